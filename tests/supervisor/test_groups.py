"""Several worker processes under one supervisor: they share the work, the listener and the watchdog."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial

from faultline.store import calls
from faultline.store.pool import Store
from tests.drills.processes import pids_marked, still_there
from tests.supervisor.conftest import HERE, begun, cut_listeners, listeners, one_line, watchdogs
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import PATIENCE, eventually, is_alive, rows


def succeeded(store: Store, job: int) -> bool:
    return state_of(store, job) == "succeeded"


def test_a_group_does_every_job_once_and_ends_when_its_queues_are_empty(database, store, group):
    ids = store.run(calls.enqueue_many([new_job(task="nap", args='{"seconds": 0.05}')] * 300))

    workers = group("--processes", "3", "--until-empty", "--name", "here")

    assert workers.wait() == 0, workers.said()
    assert sorted(job for job, _ in begun(database)) == sorted(ids)
    assert len({pid for _, pid in begun(database)}) > 1
    assert {tuple(outcomes(store, job)) for job in ids} == {("succeeded",)}
    assert rows(database, "select name from faultline.workers order by name") == [
        ("here/1",), ("here/2",), ("here/3",),
    ]  # fmt: skip
    assert pids_marked(workers.mark) == set()


def test_a_group_on_a_terminal_says_once_what_it_works_on(database, store):
    ours, theirs = os.openpty()
    words = ("worker", "group_app:app", "--processes", "2", "--until-empty")
    process = subprocess.Popen(
        [sys.executable, "-m", "faultline", *words],
        cwd=HERE, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "FAULTLINE_DSN": database},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # how a terminal whose last program has left says its end
        while part := os.read(ours, 4096):
            said += part
    os.close(ours)

    assert process.wait(PATIENCE) == 0, said
    assert said.count(b"works on default") == 1, said


def test_a_group_has_one_listener_and_one_watchdog(database, store, group):
    workers = group("--processes", "3")
    workers.working(3)
    eventually(lambda: len(listeners(database)) == 1)

    (watchdog,) = eventually(lambda: watchdogs(database))
    time.sleep(2)  # two ticks: others would have shown themselves
    assert watchdogs(database) == [watchdog]
    assert len(listeners(database)) == 1


def test_sigterm_lets_every_worker_finish(database, store, group):
    jobs = [enqueue(store, task="nap", args='{"seconds": 2}', max_attempts=1) for _ in range(4)]
    workers = group("--processes", "2", "--concurrency", "2")
    eventually(lambda: len(begun(database)) == 4, 60)

    workers.signal(signal.SIGTERM)

    assert workers.wait() == 0, workers.said()
    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * 4
    assert rows(database, "select count(*) from faultline.workers where stopped_at is null") == [(0,)]
    assert still_there(pids_marked(workers.mark)) == set()


def test_a_sigterm_to_every_process_at_once_is_one_wish_and_leaves_the_grace(database, store, group):
    """A service manager signals all it knows of, and the supervisor signals its workers once more."""
    jobs = [enqueue(store, task="nap", args='{"seconds": 2}', max_attempts=1) for _ in range(2)]
    workers = group("--processes", "2", "--concurrency", "1")
    eventually(lambda: len(begun(database)) == 2, 60)

    for pid in [*workers.pids(), workers.process.pid]:
        os.kill(pid, signal.SIGTERM)

    assert workers.wait() == 0, workers.said()
    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * 2


def test_a_second_sigterm_gives_everything_back_at_once(database, store, group):
    jobs = [enqueue(store, task="nap", args='{"seconds": 300}', max_attempts=1) for _ in range(2)]
    workers = group("--processes", "2", "--concurrency", "1", "--grace", "5m")
    eventually(lambda: len(begun(database)) == 2, 60)

    workers.signal(signal.SIGTERM)
    time.sleep(0.3)
    assert workers.process.poll() is None
    workers.signal(signal.SIGTERM)

    assert workers.wait() == 0, workers.said()
    assert [outcomes(store, job) for job in jobs] == [["released"]] * 2
    assert [store.run(calls.get(job)).attempt for job in jobs] == [0, 0]


def test_a_killed_worker_is_replaced_and_its_job_done_by_another(database, store, group):
    job = enqueue(store, task="nap", args='{"seconds": 3}', max_attempts=3)
    workers = group("--processes", "2", "--lease", "3s", "--name", "here")
    eventually(lambda: begun(database), 60)
    ((_, killed),) = begun(database)

    os.kill(killed, signal.SIGKILL)

    eventually(lambda: state_of(store, job) == "succeeded", 60)
    assert outcomes(store, job) == ["expired", "succeeded"]
    assert killed not in [pid for _, pid in workers.working(2)]
    (told,) = workers.events("process_ended")
    assert (told["name"].startswith("here/"), told["signal"], told["level"]) == (True, "SIGKILL", "warning")
    workers.signal(signal.SIGTERM)
    assert workers.wait() == 0, workers.said()


def test_a_killed_supervisor_leaves_no_process_and_no_job_behind(database, store, group):
    """Its workers notice, let their jobs finish, and go; the pacemakers go with them."""
    jobs = [enqueue(store, task="nap", args='{"seconds": 2}', max_attempts=1) for _ in range(2)]
    workers = group("--processes", "2", "--concurrency", "1")
    eventually(lambda: len(begun(database)) == 2, 60)
    everybody = pids_marked(workers.mark)
    assert len(everybody) >= 5

    workers.signal(signal.SIGKILL)

    assert still_there(everybody, 60) == set()
    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * 2
    assert rows(database, "select count(*) from faultline.workers where stopped_at is null") == [(0,)]


def test_a_killed_supervisor_ends_workers_that_only_start(database, store, group):
    workers = group("--processes", "2")
    everybody = eventually(lambda: set(workers.pids()))

    workers.signal(signal.SIGKILL)

    assert still_there(everybody, 60) == set()
    eventually(lambda: not pids_marked(workers.mark))


def test_a_wake_up_reaches_a_worker_long_before_its_poll(database, store, group):
    workers = group("--processes", "2", GROUP_POLL="60")
    workers.working(2)
    eventually(lambda: listeners(database))
    time.sleep(1)

    for _ in range(3):
        job = enqueue(store, task="nap", args='{"seconds": 0}')
        store.run(calls.wake("default"))
        eventually(partial(succeeded, store, job), 20)


def test_a_lost_listener_comes_back_and_what_was_not_heard_is_done(database, store, group):
    workers = group("--processes", "2", GROUP_POLL="60")
    workers.working(2)
    before = eventually(lambda: listeners(database))

    cut_listeners(database)
    job = enqueue(store, task="nap", args='{"seconds": 0}')

    eventually(lambda: listeners(database) not in ([], before), 60)
    eventually(lambda: state_of(store, job) == "succeeded", 20)
    assert len(listeners(database)) == 1


def test_an_app_that_cannot_be_loaded_ends_the_group_with_its_error(database, store, group):
    workers = group("--processes", "3", "--queues", "default", GROUP_RAISES="yes")

    assert workers.wait() == 2
    assert "importing group_app failed: RuntimeError: asked for" in one_line(workers.said())
    assert "Traceback" not in workers.said()


def test_a_database_without_our_schema_ends_the_group_with_its_error(empty_database, group):
    workers = group("--processes", "2", dsn=empty_database)

    assert workers.wait() == 1
    assert "run `faultline migrate`" in one_line(workers.said())


def test_workers_that_die_at_start_without_a_word_end_the_group(database, store, group, tmp_path):
    deadly = tmp_path / "deadly"
    deadly.touch()
    workers = group("--processes", "2", GROUP_DIES_IF=str(deadly))

    assert workers.wait() == 1
    assert "5 in a row, the last with code 7" in one_line(workers.said())


def test_a_group_whose_workers_can_no_longer_start_lets_the_others_finish(database, store, group, tmp_path):
    deadly = tmp_path / "deadly"
    job = enqueue(store, task="nap", args='{"seconds": 6}', max_attempts=1)
    workers = group("--processes", "2", GROUP_DIES_IF=str(deadly))
    pids = {pid for _, pid in workers.working(2)}
    eventually(lambda: begun(database))
    ((_, busy),) = begun(database)

    deadly.touch()
    os.kill(min(pids - {busy}), signal.SIGKILL)

    assert workers.wait() == 1
    assert outcomes(store, job) == ["succeeded"]
    assert not is_alive(busy)


def test_one_process_needs_no_supervisor(database, store, group):
    workers = group("--processes", "1", "--until-empty")

    assert workers.wait() == 0
    assert rows(database, "select count(*) from faultline.workers where pid = %s", workers.process.pid) == [
        (1,)
    ]


def test_a_ctrl_c_reaches_every_process_and_all_leave(database, store, group):
    """A terminal sends it to the whole group of processes, also to those that only start."""
    workers = group("--processes", "2")
    eventually(lambda: len(workers.pids()) == 2)

    for pid in [*workers.pids(), workers.process.pid]:
        os.kill(pid, signal.SIGINT)

    assert workers.wait() == 0, workers.said()
    assert still_there(pids_marked(workers.mark)) == set()
