"""`python -m proof.hold_fire`: after a failover, when does each lease come back?

A primary dies or freezes and a standby is promoted. Live workers renew their leases or give them back; the
reaper takes back those of dead workers. The moment of each, counted from the first round on the new primary,
shows how many live leases a shorter hold would have taken.
"""

import argparse
import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.embedded import EmbeddedServer
from faultline.lab.drills.stage.standby import StandbyServer, a_standby_of
from faultline.store.migrate import migrate
from faultline.store.pool import Store
from tests.support import enqueue as enqueue_one

HOLDS: Final = (0.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0)
EARLY_SECONDS: Final = 4.0
"""How long before the primary some workers are killed."""
WATCH_SECONDS: Final = 35.0
JOB_SECONDS: Final = 300.0
LOOK_EVERY: Final = 0.05

RUNNING = """
select job.id, worker.name, job.token, job.lease_until
from faultline.active as job
join faultline.workers as worker on worker.id = job.claimed_by
where job.claim is not null
"""
ENDED = "select job_id, token, outcome::text, settled_at from faultline.ledger"
ROUND = "select mine from faultline.round('0.9 s')"
FIRST_ROUND = "select gap.ended from faultline.rounds, unnest(gap_at) as gap (ended) where gap.ended > %s"
LAST_GAP = "select max(gap.ended) from faultline.rounds, unnest(gap_at) as gap (ended)"


class Back(NamedTuple):
    how: str
    after: float
    """Seconds since the first round on the new primary."""


NEVER: Final = Back("never", math.inf)


class RunningLease(NamedTuple):
    worker: str
    until: Any
    """When it ends by the rows that the standby had at its promotion."""


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m proof.hold_fire", description=__doc__)
    asked.add_argument("--fault", choices=("kill", "freeze"), default="kill")
    asked.add_argument("--away", type=float, default=20.0, help="seconds from the fault to the promotion")
    asked.add_argument(
        "--fence", type=float, default=0.0, help="seconds from there to the end of a frozen primary"
    )
    asked.add_argument("--workers", type=int, default=5, help="how many stay alive")
    said = asked.parse_args()
    with EmbeddedServer.open(fsync=False, settings={"max_connections": "200"}) as primary:
        migrate(primary.dsn())
        with a_standby_of(primary) as standby, tempfile.TemporaryDirectory() as logs:
            measure(primary, standby, said, Path(logs))
    return 0


def measure(primary: EmbeddedServer, standby: StandbyServer, said: argparse.Namespace, logs: Path) -> None:
    either = both(primary.dsn(), standby.dsn())
    names = [*(f"live{n}" for n in range(said.workers)), "died-before", "died-with"]
    workers = {name: start(name, either, logs) for name in names}
    frozen: list[int] = []
    try:
        enqueue(primary, names)
        wait_for(
            primary.dsn(),
            "select count(*) = %s from faultline.active where claim is not null",
            2 * len(names),
        )
        time.sleep(16)  # the start of the server is no gap any more
        kill(workers["died-before"])
        time.sleep(EARLY_SECONDS)
        standby.catch_up(primary.dsn())
        kill(workers["died-with"])
        frozen = fault(primary, said.fault)
        time.sleep(said.away)
        if frozen:
            standby.cut_off()
        standby.promote()
        report(said, *watch(standby, frozen, said.fence))
    finally:
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        for process in workers.values():
            kill(process)


def both(*dsns: str) -> str:
    each = [conninfo_to_dict(dsn) for dsn in dsns]
    hosts, ports = (",".join(str(known[name]) for known in each) for name in ("host", "port"))
    return make_conninfo(dsns[0], host=hosts, port=ports, target_session_attrs="read-write")


def start(name: str, dsn: str, logs: Path) -> "subprocess.Popen[bytes]":
    words = ["worker", "proof.hold_fire.shop:app", "--name", name, "--queues", name, "--concurrency", "8"]
    with (logs / name).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "faultline", *words],
            env={**os.environ, "FAULTLINE_DSN": dsn}, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def enqueue(primary: EmbeddedServer, names: Sequence[str]) -> None:
    """A job in a thread and one on the loop for each worker."""
    store = Store(primary.dsn())
    args = f'{{"seconds": {JOB_SECONDS}}}'
    for name in names:
        for task in ("grind", "doze"):
            enqueue_one(store, task=task, args=args, queue=name)
    store.close()


def wait_for(dsn: str, question: str, *args: Any) -> None:
    give_up_at = time.monotonic() + 90
    with psycopg.connect(dsn, autocommit=True) as conn:
        while conn.execute(question.encode(), args).fetchone() != (True,):
            assert time.monotonic() < give_up_at, question
            time.sleep(LOOK_EVERY)


def kill(process: "subprocess.Popen[bytes]") -> None:
    """The worker with its pacemaker, at once."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def fault(primary: EmbeddedServer, how: str) -> list[int]:
    """The primary dies, or stands still with its sockets open; answers the processes that stand still."""
    if how == "kill":
        primary.halt("immediate")
        return []
    children = Path(f"/proc/{primary.pid}/task/{primary.pid}/children").read_text().split()
    pids = [primary.pid, *map(int, children)]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    return pids


def watch(
    standby: StandbyServer, frozen: list[int], fence: float
) -> tuple[dict[int, RunningLease], dict[int, Back]]:
    """Each lease that the standby knew, and how and when after the first round it came back.

    Rounds are made here, as by the first watchdog that finds the new primary.
    """
    back: dict[int, Back] = {}
    with psycopg.connect(standby.dsn(), autocommit=True) as conn:
        held = {(row[0], row[2]): RunningLease(row[1], row[3]) for row in conn.execute(RUNNING).fetchall()}
        conn.execute(ROUND)
        (first,) = conn.execute(LAST_GAP).fetchone() or (None,)
        began = time.monotonic()
        while len(back) < len(held) and time.monotonic() < began + WATCH_SECONDS:
            if frozen and time.monotonic() >= began + fence:
                end_all(frozen)
            if conn.execute(ROUND).fetchone() == (True,):
                conn.execute("select from faultline.reap()")
            (now,) = conn.execute("select clock_timestamp()").fetchone() or (None,)
            for job, _, token, until in conn.execute(RUNNING).fetchall():
                if (job, token) in held and until > held[job, token].until:
                    back.setdefault(job, Back("renewed", (now - first).total_seconds()))
            for job, token, outcome, at in conn.execute(ENDED).fetchall():
                if (job, token) in held:
                    back.setdefault(job, Back(outcome, (at - first).total_seconds()))
            time.sleep(LOOK_EVERY)
    return {
        job: lease._replace(until=(lease.until - first).total_seconds()) for (job, _), lease in held.items()
    }, back


def end_all(frozen: list[int]) -> None:
    while frozen:
        with contextlib.suppress(ProcessLookupError):
            os.kill(frozen.pop(), signal.SIGKILL)


def report(said: argparse.Namespace, held: dict[int, RunningLease], back: dict[int, Back]) -> None:
    fenced = f", fenced {said.fence:g} s after the promotion" if said.fault == "freeze" else ""
    print(f"# {said.fault}, promoted after {said.away:g} s{fenced}; seconds from the first round there")
    for job, lease in sorted(held.items(), key=lambda item: item[1].worker):
        how, after = back.get(job, NEVER)
        print(f"  {lease.worker:12} lease ended {lease.until:6.1f}  {how:9} {after:6.1f}")
    live = [
        (lease.until, back.get(job, NEVER).after) for job, lease in held.items() if lease.worker[0] == "l"
    ]
    wrongly = {hold: sum(after > max(hold, until) for until, after in live) for hold in HOLDS}
    print(f"  of {len(live)} live leases a hold of so many seconds would have taken: {wrongly}")


if __name__ == "__main__":
    sys.exit(main())
