"""P10: a job that kills its process at every attempt ends among the dead, and takes no other job with it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faultline.store import calls
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker import suspects_app as shop
from tests.worker.harness import eventually, execute, quick, rows, short, working

ROOT = Path(__file__).parents[2]
SIGNATURES = {
    "exit": "exit code 7", "segfault": "SIGSEGV", "abort": "SIGABRT", "kill": "SIGKILL",
    "memory": "out of memory",
}  # fmt: skip
INNOCENTS = 8


@pytest.fixture
def victim(database: str, store: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A worker as the command line starts it, with room for a poison and all its batch-mates."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "faultline", "worker", "tests.worker.suspects_app:app", "--concurrency", "4",
         "--lease", "1s"],
        cwd=ROOT, env={**os.environ, "FAULTLINE_DSN": database}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    yield worker
    worker.kill()
    worker.wait()


def test_no_innocent_dies_of_a_neighbours_crash(database, store, victim, monkeypatch):
    """The poison and eight others are leased to a worker, four of them running, when it dies of it."""
    monkeypatch.setenv("FAULTLINE_DSN", database)
    kinds = [shop.innocent.name, shop.innocent_in_thread.name] * (INNOCENTS // 2)
    innocents = [enqueue(store, task=kind, max_attempts=2) for kind in kinds]
    poison = enqueue(store, task="poison", args='{"how": "segfault"}', max_attempts=10)
    execute(database, "update faultline.active set pos = 0 where id = %s", poison)  # first in the line

    assert victim.wait(30) < 0
    with working(database, *shop.app.registry, config=short()) as other:
        eventually(lambda: state_of(store, poison) == "dead")
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in innocents))
        assert other.leave() == 0

    buried = store.run(calls.get(poison))
    assert buried.error.startswith("out of crashes: crashed alone 3 times, at last by SIGSEGV: HandlerDied")
    assert outcomes(store, poison)[0] == "expired"
    assert rows(database, "select count(*), count(distinct job_id) from effects") == [(INNOCENTS,) * 2]


def ends_told(caplog, job):
    """How the log tells of the ends of a job's attempts: an alert looks for the last one."""
    ends = [record for record in caplog.records if getattr(record, "event", "") == "execution_finished"]
    return [(one.levelname, one.facts["state"]) for one in ends if one.facts["job_id"] == job]


def test_every_way_to_die_is_kept_by_its_signature_and_no_other_job_is_hurt(
    database, store, monkeypatch, caplog
):
    """All of them at once, and ordinary jobs beside them in the same worker."""
    monkeypatch.setenv("FAULTLINE_DSN", database)
    ways = {
        enqueue(store, task=task, args=json.dumps({"how": how}), max_attempts=10): how
        for task, how in zip(
            ("poison", "poison_in_thread", "poison_in_process", "poison", "poison_in_thread"),
            shop.POISONS,
            strict=True,
        )
    }
    execute(database, "update faultline.active set crashes = 2")
    with working(database, *shop.app.registry, config=quick(jobs_max=8)) as worker:
        beside = store.run(calls.enqueue_many([new_job(task="innocent")] * 20))
        eventually(lambda: all(state_of(store, job) == "dead" for job in ways))
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in beside))
        assert worker.leave() == 0

    for job, how in ways.items():
        error = store.run(calls.get(job)).error
        assert error.startswith(f"out of crashes: crashed alone 3 times, at last by {SIGNATURES[how]}"), how
        assert outcomes(store, job) == ["failed", "failed", "dead"]
        assert ends_told(caplog, job) == [("WARNING", "queued"), ("WARNING", "queued"), ("ERROR", "dead")]
    assert {tuple(outcomes(store, job)) for job in beside} == {("succeeded",)}


def test_memory_that_runs_out_in_the_worker_makes_a_suspect_of_the_job(database, store, monkeypatch):
    """Who asked for the memory need not be who ate it: a crash, beside others, and the next one is alone."""
    monkeypatch.setenv("FAULTLINE_DSN", database)
    job = enqueue(store, task="poison_in_thread", args='{"how": "greed"}', max_attempts=10)

    with working(database, *shop.app.registry):
        eventually(lambda: state_of(store, job) == "dead")

    info = store.run(calls.get(job))
    assert info.error.startswith(
        "out of crashes: crashed alone 3 times, at last by out of memory: MemoryError"
    )
    first, *others = [int(pid) for (pid,) in rows(database, "select said from notes order by at")]
    assert first == os.getpid()
    assert os.getpid() not in others
