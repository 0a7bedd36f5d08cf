"""A handler that blocks the event loop costs its neighbours nothing; a child that must end is ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from faultline.store import calls
from faultline.worker.heartbeat.child_guard import STILL_SECONDS, ChildGuard, end_group
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.heartbeat.liveness import in_frozen_cgroup
from tests.support import enqueue, outcomes, state_of
from tests.worker import children_app as shop
from tests.worker.harness import attempt_of, eventually, is_alive, quick, short, working
from tests.worker.test_children_killed import notes, pid_of
from tests.worker.test_pacemaker import lease, write

LEASE = 4.0
COMMAND = (sys.executable, "-m", "faultline")
OPTIONS = ("--children", "4", "--threads", "8", "--concurrency", "16", "--lease", f"{LEASE}s")


@pytest.fixture
def worker(database: str, store: Any, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of the app in a process of its own."""
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [*COMMAND, "worker", "tests.worker.children_app:app", *OPTIONS], stderr=log,
            cwd=Path(__file__).parents[2], env={**os.environ, "FAULTLINE_DSN": database},
        )  # fmt: skip
    yield process
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait()


def test_a_blocked_loop_loses_none_of_its_neighbours(database, store, worker):
    """Four leases of time.sleep in an async handler: threads and children keep their leases, and finish."""
    long = f'{{"seconds": {LEASE * 5}}}'
    neighbours = [enqueue(store, task="nap_in_thread", args=long) for _ in range(8)]
    neighbours += [enqueue(store, task="nap", args=long) for _ in range(4)]
    eventually(lambda: all(notes(database, job) for job in neighbours))

    blocker = enqueue(store, task="block", args=f'{{"seconds": {LEASE * 4}}}')
    with working(database, config=short(queues={"nothing": None})):  # a watchdog, ready to take them
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in (blocker, *neighbours)), 90)

    assert {tuple(outcomes(store, job)) for job in (blocker, *neighbours)} == {("succeeded",)}


def test_a_cancelled_child_is_ended_while_the_loop_is_blocked(database, store, worker):
    job = enqueue(store, task="spin")
    pid = pid_of(database, job)
    blocker = enqueue(store, task="block", args='{"seconds": 60}')
    eventually(lambda: notes(database, blocker))

    store.run(calls.cancel(job))

    eventually(lambda: not is_alive(pid))
    assert state_of(store, blocker) == "running"


def test_a_child_at_its_timeout_is_ended_while_the_loop_is_blocked(database, store, worker, tmp_path):
    """When the loop hears of it, it is a timeout, and no crash of the job."""
    go_on = tmp_path / "go-on"
    job = enqueue(store, task="spin", timeout=timedelta(seconds=LEASE * 2), max_attempts=1)
    pid = pid_of(database, job)
    blocker = enqueue(store, task="block_until", args=f'{{"path": "{go_on}"}}')
    eventually(lambda: notes(database, blocker))

    eventually(lambda: not is_alive(pid))
    assert state_of(store, blocker) == "running"
    go_on.touch()
    eventually(lambda: outcomes(store, job), 60)

    info = store.run(calls.get(job))
    assert (outcomes(store, job), info.crashes) == (["dead"], 0)
    assert "ran into its timeout" in info.error


def test_the_child_of_a_stopped_worker_is_ended(database, store, worker):
    """A frozen worker loses its jobs; what it has started does not go on beside their successors."""
    job = enqueue(store, task="spin")
    pid = pid_of(database, job)

    worker.send_signal(signal.SIGSTOP)

    eventually(lambda: not is_alive(pid))


def test_a_child_that_the_pacemaker_ended_is_no_crash_of_its_job(database, store):
    """Its lease could not be renewed, which is nothing that the job did: its attempt is given back."""
    job = enqueue(store, task="spin")

    with working(database, *shop.app.registry, config=quick(jobs_max=1)) as worker:
        pid, attempt = pid_of(database, job), attempt_of(worker, job)
        worker.worker._state.lease_table.end_child(attempt.slot, attempt.generation, "not_renewed")
        end_group(pid, os.getpid())
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job)[0] == "released"
    assert store.run(calls.get(job)).crashes == 0


# ChildGuard and the cgroup, by themselves


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, as a child is."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def lease_table() -> Iterator[LeaseTable]:
    made = LeaseTable.make(1)
    yield made
    made.close()


def on_board(
    lease_table: LeaseTable, pid: int, ends_in: float = 600.0, lease_for: float = 600.0
) -> tuple[int, int]:
    """A job in a child process, as the worker writes it down."""
    now = time.monotonic()
    slot, generation = write(lease_table, lease(1)._replace(lease_for=lease_for, taken_at=now))
    lease_table.name_child(slot, generation, pid, now + ends_in)
    return slot, generation


def looks(lease_table: LeaseTable, guardian: ChildGuard, times: int = 3) -> None:
    """So many looks in a row, the last of them well after the first."""
    for _ in range(times):
        guardian.look()
    guardian._still_since -= STILL_SECONDS
    guardian.look()


@pytest.mark.parametrize("word", ["lost", "cancel"])
def test_a_child_whose_job_is_no_longer_ours_is_ended(lease_table, sleeper, word):
    guardian, at = ChildGuard(lease_table, 600.0, os.getpid()), on_board(lease_table, sleeper.pid)
    lease_table.set_reply(*at, 0.0, word)

    looks(lease_table, guardian)

    assert sleeper.wait(30) == -signal.SIGKILL
    assert lease_table.ended_for(*at) == word


@pytest.mark.parametrize(("ends_in", "lease_for", "why"), [(-1, 600, "timeout"), (600, 0.1, "not_renewed")])
def test_a_child_that_has_no_time_left_is_ended(lease_table, sleeper, ends_in, lease_for, why):
    guardian = ChildGuard(lease_table, 600.0, os.getpid())
    at = on_board(lease_table, sleeper.pid, ends_in, lease_for)

    looks(lease_table, guardian)

    assert sleeper.wait(30) == -signal.SIGKILL
    assert lease_table.ended_for(*at) == why


def test_while_the_loop_turns_it_ends_its_children_itself(lease_table, sleeper):
    guardian, at = ChildGuard(lease_table, 600.0, os.getpid()), on_board(lease_table, sleeper.pid, ends_in=-1)

    for _ in range(5):
        lease_table.tick(600.0)
        guardian.look()  # this look sees a tick; the next sees none, which may be its own late waking
        guardian.look()

    assert sleeper.poll() is None
    assert lease_table.ended_for(*at) is None


def test_a_child_with_time_left_is_left_alone(lease_table, sleeper):
    guardian, at = (
        ChildGuard(lease_table, 600.0, os.getpid()),
        on_board(lease_table, sleeper.pid, lease_for=1.0),
    )
    lease_table.set_reply(*at, time.monotonic() + 600, "held")

    looks(lease_table, guardian)

    assert sleeper.poll() is None


def test_a_process_that_the_worker_did_not_start_is_left_alone(sleeper):
    """Its number may be given to another process once the worker has waited for it."""
    end_group(sleeper.pid, parent=1)
    end_group(2**22 - 1, parent=os.getpid())

    time.sleep(0.1)
    assert sleeper.poll() is None


CGROUPS = Path("/sys/fs/cgroup")
FREEZERS = [
    pytest.param(CGROUPS / root, *words, id=name)
    for root, name, words in [
        ("freezer", "version 1", (("freezer.state", "FROZEN"), ("freezer.state", "THAWED"))),
        ("unified", "version 2 beside it", (("cgroup.freeze", "1"), ("cgroup.freeze", "0"))),
        (".", "version 2", (("cgroup.freeze", "1"), ("cgroup.freeze", "0"))),
    ]
    if (CGROUPS / root / "cgroup.procs").exists()
]


@pytest.mark.parametrize(("root", "freeze", "thaw"), FREEZERS)
def test_a_process_in_a_frozen_cgroup_is_known(sleeper, root, freeze, thaw):
    """For real where this machine lets us make one; the state letter is D or S."""
    group = root / f"faultline-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as refused:
        pytest.skip(f"no cgroup can be made here: {refused}")
    try:
        (group / "cgroup.procs").write_text(str(sleeper.pid))
        assert not in_frozen_cgroup(sleeper.pid)
        (group / freeze[0]).write_text(freeze[1])
        eventually(lambda: in_frozen_cgroup(sleeper.pid))
        (group / thaw[0]).write_text(thaw[1])
        eventually(lambda: not in_frozen_cgroup(sleeper.pid))
    finally:
        sleeper.kill()
        sleeper.wait()
        eventually(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()
