"""The pacemaker: it beats for a worker that works, whatever its handlers do, and for no other."""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

from faultline.lease import Lease
from faultline.store import calls
from faultline.worker.heartbeat import lease_table as table
from faultline.worker.heartbeat import liveness
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.heartbeat.liveness import ProcessLiveness, ProcessStat, read_process_stat
from faultline.worker.heartbeat.pacemaker import Pacemaker
from tests.support import enqueue, outcomes, state_of
from tests.worker.harness import LEASE, children, drain, eventually, is_alive, rows, short

A_FEW = 4.0
"""Seconds of a lease whose renewals, or whose end, a test waits for.

No watchdog runs beside it. On a busy machine its worker may give the job back and take it again.
"""


def renewed(dsn: str, times: int) -> Callable[[], bool]:
    """Whether a lease that is held now, or later, has been renewed so many times since."""
    seen: dict[int, set[datetime]] = {}

    def look() -> bool:
        for token, until in rows(
            dsn, "select token, lease_until from faultline.active where claim is not null"
        ):
            seen.setdefault(token, set()).add(until)
        return any(len(ends) > times for ends in seen.values())

    return look


@pytest.mark.parametrize("task", ["hold_the_lock", "nap", "nap_in_thread"])
def test_a_long_handler_keeps_its_lease_whatever_it_does_to_its_process(database, store, real_worker, task):
    """A.v: also one that holds the interpreter's lock and so stops every thread of its process."""
    worker = real_worker(watchdog=False, seconds={"lease_for": A_FEW})
    enqueue(store, task=task, args='{"seconds": 600}', max_attempts=1)
    eventually(lambda: rows(database, "select 1 from notes"))

    eventually(renewed(database, 2))  # the second of them, at least, began while the handler was at it

    assert is_alive(worker.pid)


def test_the_handler_that_holds_the_lock_really_holds_it():
    """Or the test above would show nothing: while it adds, no other thread of its process gets a turn.

    On a busy machine the process may lose its core between reading the clock and adding, so it has several
    tries. A handler that did not hold the lock would let the other thread in every 5 ms of each.
    """
    assert any(_turns_while_adding() == [] for _ in range(10))


def _turns_while_adding() -> list[float]:
    turns: list[float] = []
    done = threading.Event()

    def turn() -> None:
        while not done.wait(0.001):
            turns.append(time.perf_counter())

    threading.Thread(target=turn, daemon=True).start()
    time.sleep(0.05)
    began = time.perf_counter()
    sum(range(10_000_000))
    ended = time.perf_counter()
    done.set()

    return [at for at in turns if began + 0.02 < at < ended - 0.02]


def test_a_killed_pacemaker_is_replaced_and_no_lease_is_lost(database, store, real_worker):
    worker = real_worker(seconds={})
    job = enqueue(store, task="nap", args='{"seconds": 600}', max_attempts=1)
    eventually(lambda: rows(database, "select 1 from notes"))
    first = worker.pacemaker()

    os.kill(first, signal.SIGKILL)

    second = eventually(lambda: [pid for pid in children(worker.pid) if pid != first])
    eventually(renewed(database, 1))
    assert len(second) == 1
    assert set(outcomes(store, job)) <= {"released"}
    assert state_of(store, job) == "running"


def test_it_goes_when_its_worker_is_killed(database, store, real_worker):
    worker = real_worker()
    enqueue(store, task="nap", args='{"seconds": 60}')
    pacemaker = worker.pacemaker()
    # Nothing is claimed before it beats: killed any earlier, it would end for want of orders.
    eventually(lambda: rows(database, "select 1 from faultline.active where claim is not null"))

    worker.signal(signal.SIGKILL)
    worker.wait()

    eventually(lambda: not is_alive(pacemaker))


HELD_UP = """
import os, socket
from faultline.worker.heartbeat import pacemaker

class HeldUp:
    def connect(self):
        print(os.getpid(), flush=True)
        ends = socket.socketpair()
        ends[0].recv(1)

pacemaker.main(lambda said: HeldUp())
"""
WORKER = """
import json, os, subprocess, sys

command = [sys.executable, "-c", *sys.argv[1:]]
child = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[int(sys.argv[2])])
said = {"lease": 15.0, "worker": 1, "parent": os.getpid()}
child.stdin.write(json.dumps(said).encode() + b"\\n")
child.stdin.flush()
child.wait()
"""


def test_it_goes_even_while_its_server_does_not_answer():
    """It can look at nothing then: not at its parent, and not at the pipe."""
    made = LeaseTable.make(1)
    fd = made.file.fileno()
    command = [sys.executable, "-c", WORKER, HELD_UP, str(fd), "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[fd]) as worker:
        assert worker.stdout is not None
        pacemaker = int(worker.stdout.readline())
        worker.kill()
        worker.wait()
        try:
            eventually(lambda: not is_alive(pacemaker))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pacemaker, signal.SIGKILL)
    made.close()


def test_a_stopped_worker_loses_its_leases_though_its_pacemaker_runs(database, store, real_worker):
    """P3, for the worker's process alone."""
    worker = real_worker(watchdog=False, seconds={"lease_for": A_FEW})
    job = enqueue(store, task="nap", args='{"seconds": 600}')
    eventually(lambda: rows(database, "select 1 from notes"))
    pacemaker = worker.pacemaker()

    worker.signal(signal.SIGSTOP)

    # With one beat in each third of a lease, a lease that is renewed never comes to its end.
    eventually(lambda: rows(database, "select 1 from faultline.active where lease_until < faultline.now()"))
    assert is_alive(pacemaker)
    assert [lost.job_id for lost in store.run(calls.reap())] == [job]
    assert outcomes(store, job)[-1] == "expired"
    assert store.run(calls.get(job)).crashes == 1


def test_a_worker_that_wakes_late_is_refused_and_goes_on(database, store, real_worker):
    """P3: frozen for longer than its lease, a successor finished; its own commit is refused, it lives on."""
    frozen = real_worker(
        environment={"FAULTLINE_FAILPOINTS": "commit.sending=freeze"}, name="frozen", watchdog=False
    )
    job = enqueue(store, task="spend", args='{"said": "paid"}')
    eventually(lambda: read_process_stat(frozen.pid).state == "T")
    other = real_worker(name="other", seconds={})
    eventually(lambda: state_of(store, job) == "succeeded")

    for pid in (frozen.pid, *children(frozen.pid)):
        os.kill(pid, signal.SIGCONT)

    refusals = eventually(lambda: store.run(calls.refusals(job)))
    assert [(refusal.reason, refusal.worker) for refusal in refusals] == [("token_mismatch", "frozen")]
    assert refusals[0].token < refusals[0].current_token
    assert rows(database, "select said, token from effects") == [("paid", refusals[0].current_token)]
    other.signal(signal.SIGTERM)
    assert other.wait() == 0
    after = enqueue(store, task="spend", args='{"said": "again"}')
    eventually(lambda: state_of(store, after) == "succeeded")


# LeaseTable and the heartbeat watch, by themselves


def lease(job: int) -> Lease:
    return Lease(job, job + 100, uuid4(), 1.5, 7.25)


def write(table: LeaseTable, held: Lease) -> tuple[int, int]:
    return table.write(held.job_id, held.token, held.claim.bytes, held.lease_for, held.taken_at)


def test_the_board_shows_each_lease_until_it_is_wiped():
    mine = LeaseTable.make(3)
    one, two = lease(1), lease(2)
    first, second = write(mine, one), write(mine, two)
    other = LeaseTable.open(os.dup(mine.file.fileno()), 3)

    assert {held for _, _, held in other.held()} == {one, two}
    mine.wipe(first[0])
    assert [held for _, _, held in other.held()] == [two]
    assert mine.room == 2

    other.set_reply(*second, 9.5, "held")
    assert mine.answer(*second) == (9.5, "held")
    other.close()
    mine.close()


def test_an_answer_to_an_earlier_lease_in_the_same_slot_is_ignored():
    mine = LeaseTable.make(1)
    slot, old = write(mine, lease(1))
    mine.set_reply(slot, old, 0.0, "lost")
    mine.wipe(slot)
    slot, new = write(mine, lease(2))

    assert mine.answer(slot, old) == (0.0, "lost")
    assert mine.answer(slot, new) is None
    mine.close()


def test_an_answer_half_written_belongs_to_no_lease(monkeypatch):
    """Whatever the reader catches between two of the writer's steps, it is not a word on the new lease."""
    made = LeaseTable.make(1)
    slot, old = write(made, lease(1))
    made.set_reply(slot, old, 0.0, "lost")
    made.wipe(slot)
    slot, new = write(made, lease(2))
    seen = []

    class Watched:
        @staticmethod
        def pack_into(buffer, at, *values):
            seen.append(made.answer(slot, new))
            spoken.pack_into(buffer, at, *values)
            seen.append(made.answer(slot, new))

    spoken = table.SPOKEN
    monkeypatch.setattr(table, "SPOKEN", Watched)
    made.set_reply(slot, new, 5.0, "held")

    assert seen == [None, None]
    assert made.answer(slot, new) == (5.0, "held")
    made.close()


@pytest.mark.parametrize("state", ["S", "D", "R", "I"])
def test_a_process_that_is_not_stopped_has_a_pulse_though_nothing_of_it_moves(monkeypatch, state):
    """A handler that sleeps blocks the loop, and uses no CPU: its neighbours are at work all the same."""
    monkeypatch.setattr(liveness, "read_process_stat", lambda pid: ProcessStat(state, "10+5"))
    watched = ProcessLiveness(os.getpid())

    assert [watched.beats(1) for _ in range(5)] == [True] * 5


@pytest.mark.parametrize("state", ["T", "Z", "X"])
def test_a_process_that_is_stopped_or_gone_has_none(monkeypatch, state):
    monkeypatch.setattr(liveness, "read_process_stat", lambda pid: ProcessStat(state, str(time.monotonic())))
    watched = ProcessLiveness(os.getpid())

    assert not watched.beats(1)
    assert not watched.beats(2)


def test_one_that_is_traced_has_a_pulse_while_it_moves(monkeypatch):
    """A tracer stops it for a moment at each call, a debugger for as long as a person thinks."""
    vital = [ProcessStat("t", "10+5")]
    monkeypatch.setattr(liveness, "read_process_stat", lambda pid: vital[0])
    watched = ProcessLiveness(os.getpid())

    assert watched.beats(1)
    assert not watched.beats(1)
    assert watched.beats(2)
    vital[0] = ProcessStat("t", "11+5")
    assert watched.beats(2)


def test_one_in_a_frozen_cgroup_has_none_unless_it_moves(monkeypatch):
    monkeypatch.setattr(liveness, "read_process_stat", lambda pid: ProcessStat("S", "10+5"))
    monkeypatch.setattr(liveness, "in_frozen_cgroup", lambda pid: True)
    watched = ProcessLiveness(os.getpid())

    assert [watched.beats(1), watched.beats(1), watched.beats(2), watched.beats(2)] == [
        True, False, True, False
    ]  # fmt: skip


def test_after_a_suspension_every_lease_is_due(monkeypatch):
    """The leases ran on while the machine slept, and its monotonic clock did not."""
    slept = [5.0]
    monkeypatch.setattr("faultline.worker.heartbeat.pacemaker.asleep", lambda: slept[0])
    made = LeaseTable.make(2)
    write(made, lease(1)._replace(taken_at=time.monotonic(), lease_for=600.0))
    beaten: list[list[Lease]] = []

    def beat(leases: list[Lease], *rest: object) -> list[object]:
        beaten.append(leases)
        return []

    sender = SimpleNamespace(connect=lambda: None, beat=beat, hang_up=lambda: None)
    pacemaker = Pacemaker(made, sender, 600.0, None, ProcessLiveness(os.getppid()), asleep=5.0)

    pacemaker._beat()
    slept[0] = 65.0
    pacemaker._beat()
    pacemaker._beat()

    assert [len(leases) for leases in beaten if leases] == [1]
    made.close()


def test_a_process_that_is_not_there_has_no_pulse():
    assert read_process_stat(2**22 - 1).state == "X"
    assert read_process_stat(os.getpid()).state in "RS"


def test_a_worker_that_goes_while_it_is_looked_at_is_gone(monkeypatch):
    """Between the opening of its file in /proc and the reading of it: the kernel then says ESRCH."""

    def read_bytes(path):
        raise ProcessLookupError

    monkeypatch.setattr(Path, "read_bytes", read_bytes)

    assert read_process_stat(os.getpid()).state == "X"


def test_each_renewal_is_told_as_a_heartbeat(database, store, caplog):
    """The line at DEBUG names the job and its token."""

    async def nap() -> None:
        await asyncio.sleep(LEASE.total_seconds() * 1.5)

    job = enqueue(store, task="nap", args="{}")
    with caplog.at_level(logging.DEBUG, logger="faultline.events"):
        drain(database, nap, config=short())

    told = [record.facts for record in caplog.records if getattr(record, "event", "") == "heartbeat"]
    assert told
    assert {(facts["job_id"], facts["task"]) for facts in told} == {(job, "nap")}
    assert all(facts["token"] > 0 for facts in told)
