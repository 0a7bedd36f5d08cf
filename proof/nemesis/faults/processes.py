"""Faults of processes: killed, frozen for longer than a lease, frozen in the middle of a commit."""

import asyncio
import contextlib
import os
import signal
import time
from typing import Final

from proof.nemesis.crew import TRAPPED, Post, family, state_of
from proof.nemesis.plan import LEASE_SECONDS, Fault
from proof.nemesis.storm import Missed, Storm

LOOK_EVERY_SECONDS: Final = 0.1
TRAP_SECONDS_MAX: Final = 40.0
AFTERWARDS_SECONDS: Final = 1.5


def _one_of(storm: Storm, fault: Fault) -> Post:
    crew = [post for post in storm.arena.crew if not post.name.startswith("trapped")]
    return crew[fault.subject % len(crew)]


async def kill(storm: Storm, fault: Fault) -> str:
    return _struck(_one_of(storm, fault), signal.SIGKILL)


async def kill_group(storm: Storm, fault: Fault) -> str:
    return _struck(_one_of(storm, fault), signal.SIGKILL, all_of_it=True)


async def terminate(storm: Storm, fault: Fault) -> str:
    return _struck(_one_of(storm, fault), signal.SIGTERM)


async def kill_producers(storm: Storm, fault: Fault) -> str:
    return _struck(storm.arena.producers, signal.SIGKILL)


def _struck(post: Post, number: signal.Signals, *, all_of_it: bool = False) -> str:
    pid = post.strike(number, all_of_it=all_of_it)
    if pid is None:
        raise Missed(f"no worker was at {post.name}'s post")
    return f"{post.name}-{post.starts}, process {pid}"


async def kill_pacemaker(storm: Storm, fault: Fault) -> str:
    return _kill_one(storm, fault, "faultline.worker.heartbeat.pacemaker")


async def kill_process(storm: Storm, fault: Fault) -> str:
    return _kill_one(storm, fault, "--supervised")


async def kill_child(storm: Storm, fault: Fault) -> str:
    return _kill_one(storm, fault, "faultline.worker.processes.child_main")


def _kill_one(storm: Storm, fault: Fault, word: str) -> str:
    """SIGKILL to one process whose command line has this word, at any post."""
    found = [
        (post.name, pid)
        for post in storm.arena.crew
        if post.pid is not None
        for pid, command in sorted(family(post.pid).items())
        if word in command
    ]
    if not found:
        raise Missed(f"no process of any worker is a {word}")
    name, pid = found[fault.subject % len(found)]
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return f"{name}, process {pid}"


async def freeze(storm: Storm, fault: Fault) -> str:
    return await _freeze(_one_of(storm, fault), fault, all_of_it=True)


async def freeze_worker(storm: Storm, fault: Fault) -> str:
    return await _freeze(_one_of(storm, fault), fault, all_of_it=False)


async def _freeze(post: Post, fault: Fault, *, all_of_it: bool) -> str:
    pid = post.send(signal.SIGSTOP, all_of_it=all_of_it)
    if pid is None:
        raise Missed(f"no worker was at {post.name}'s post")
    frozen = [pid, *family(pid)] if all_of_it else [pid]
    await asyncio.sleep(fault.lasts)
    for member in frozen:
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGCONT)
    return f"{post.name}-{post.starts} for {fault.lasts:.1f} s"


async def trap(storm: Storm, fault: Fault) -> str:
    """A worker that stops itself as it sends its first commit, and wakes when another worker has the job."""
    queue = ("ambushes", "plain-ambushes")[fault.subject % 2]
    name = f"trapped-{fault.number}"
    post = await storm.arena.man(name, TRAPPED[queue])
    try:
        await until_frozen(post)
        post.wanted = False  # once it has gone it is not replaced
        since = time.monotonic()
        taken = await _until_taken(storm, f"{name}-{post.starts}", fault.lasts)
        post.send(signal.SIGCONT, all_of_it=True)
        await asyncio.sleep(AFTERWARDS_SECONDS)
        return f"{name} on {queue}, {time.monotonic() - since:.1f} s, its job {taken}"
    finally:
        await storm.arena.dismiss(name)


async def until_frozen(post: Post) -> None:
    until = time.monotonic() + TRAP_SECONDS_MAX
    while time.monotonic() < until:
        if (pid := post.pid) is not None and state_of(pid) == "T":
            return
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    raise Missed("it never came to its commit")


async def _until_taken(storm: Storm, name: str, at_least: float) -> str:
    """Wait until another worker has the job that it holds, or has done it: then it must wake."""
    until = time.monotonic() + at_least + 4 * LEASE_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(*storm.TROUBLE):
            if taken := await storm.ask(_TAKEN, [name]):
                return str(taken)
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    return "was not taken by another"


_TAKEN: Final = """
select format('(token %%s) was %%s by then', entry.token,
              case when job.id is null then 'ended' else format('with another (token %%s)', job.token) end)
from faultline.ledger as entry
join faultline.workers as worker on worker.id = entry.worker
left join faultline.active as job
  on job.id = entry.job_id and job.token > entry.token and job.claim is not null
where worker.name = %s and entry.outcome in ('expired', 'dead')
  and not exists (select from faultline.later as waiting where waiting.id = entry.job_id)
  and not exists (select from faultline.active as free where free.id = entry.job_id and free.claim is null)
limit 1
"""

ACTS: Final = {
    "kill": kill, "kill-group": kill_group, "kill-pacemaker": kill_pacemaker, "kill-process": kill_process,
    "kill-child": kill_child, "terminate": terminate, "kill-producers": kill_producers, "freeze": freeze,
    "freeze-worker": freeze_worker, "trap": trap,
}  # fmt: skip
