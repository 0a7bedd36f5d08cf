"""Handlers in child processes: found, run and judged as in a thread, by processes that are kept warm."""

import importlib
import json
import logging
import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from faultline.app import Faultline
from faultline.client import Task
from faultline.config import Settings, WorkerConfig
from faultline.errors import ConfigError
from faultline.store import calls
from faultline.task import Registry, TaskSpec, spec_of
from faultline.worker.processes import child_pool
from faultline.worker.worker import Worker
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker import children_app as shop
from tests.worker.harness import PATIENCE, drain, effect_key, eventually, is_alive, quick, rows, working


def run(database: str, store: Any, task: Task[..., Any], args: str = "{}", **options: Any) -> int:
    """Enqueue one job of a task, work until nothing is due, and answer its id."""
    job = enqueue(store, task=task.name, args=args, **options)
    drain(database, *shop.app.registry)
    return job


def result_of(store: Any, job: int) -> Any:
    return store.run(calls.get(job)).result


def test_a_handler_runs_in_the_main_thread_of_a_process_of_its_own_and_sees_its_job(database, store):
    job = enqueue(store, task=shop.who.name, key="order-7", max_attempts=7)
    effect = effect_key(database, job, "intent")

    drain(database, *shop.app.registry)

    seen = result_of(store, job)
    assert seen.pop("pid") != os.getpid()
    assert seen == {
        "parent": os.getpid(), "id": job, "task": "who", "queue": "default", "attempt": 1, "token": 1,
        "key": "order-7", "max_attempts": 7, "idempotency_key": effect, "lost": False,
        "current": True, "main_thread": True,
    }  # fmt: skip
    assert outcomes(store, job) == ["succeeded"]


def test_an_async_handler_has_a_loop_in_its_process(database, store):
    job = run(database, store, shop.who_async)

    assert result_of(store, job)["loop"]
    assert result_of(store, job)["pid"] != os.getpid()


def test_one_that_asks_for_a_thread_stays_in_the_worker(database, store):
    assert result_of(store, run(database, store, shop.in_thread)) == os.getpid()


def test_arguments_are_decoded_in_the_child_and_bad_ones_fail_their_own_job(database, store):
    bad = enqueue(store, task="add", args='{"first": "one"}')
    good = enqueue(store, task="add", args='{"first": 2}')

    drain(database, *shop.app.registry)

    assert store.run(calls.get(bad)).error.startswith(
        "BadArguments: task add, argument first: expected `int`"
    )
    assert outcomes(store, bad) == ["failed"]
    assert result_of(store, good) == 3


@pytest.mark.parametrize(
    ("word", "ended_as", "told"),
    [
        ("snooze", "snoozed", "not \\ud800 ready"),
        ("raise snooze", "snoozed", ""),
        ("cancel", "cancelled", "withdrawn"),
        ("dead", "dead", "the account is closed"),
        ("bury", "dead", "PermissionError: never"),
        ("object", "failed", "BadDocument: result of task speak"),
        ("nan", "failed", "BadDocument: result of task speak"),
        ("exit", "failed", "SystemExit: 3"),
    ],
)
def test_what_a_handler_says_is_recorded_as_if_it_ran_in_the_worker(database, store, word, ended_as, told):
    job = run(database, store, shop.speak, json.dumps({"word": word}))

    assert outcomes(store, job) == [ended_as]
    (entry,) = store.run(calls.history(job))
    assert (entry.error or "").startswith(told)


def test_a_snooze_keeps_its_delay(database, store):
    job = run(database, store, shop.speak, '{"word": "snooze"}')

    ((left,),) = rows(database, "select (run_at - clock_timestamp()) from faultline.jobs where id = %s", job)
    assert 2.9 < left.total_seconds() / 86_400 <= 3.0001


@pytest.mark.parametrize(
    ("word", "ended_as", "told"),
    [("exit", "failed", "SystemExit: 3"), ("cancel", "failed", "CancelledError"), ("why", "dead", "why")],
)
def test_what_an_async_handler_raises_ends_its_attempt_and_not_its_process(
    database, store, word, ended_as, told
):
    first = enqueue(store, task="pid")
    job = enqueue(store, task="speak_async", args=json.dumps({"word": word}))
    last = enqueue(store, task="pid")

    drain(database, *shop.app.registry, config=quick(jobs_max=1))

    assert outcomes(store, job) == [ended_as]
    assert store.run(calls.get(job)).error.startswith(told)
    assert result_of(store, first) == result_of(store, last)


def test_a_result_as_large_as_the_database_takes_comes_through(database, store):
    job = run(database, store, shop.speak, '{"word": "big"}')

    assert result_of(store, job) == "é\n" * 170_000


def test_an_error_is_kept_with_its_traceback_and_its_cause(database, store):
    job = run(database, store, shop.fail)

    error = store.run(calls.get(job)).error
    assert error.startswith("RuntimeError: the charge failed\n")
    assert "children_app.py" in error
    assert "in deeply" in error
    assert "caused by ValueError: no such order" in error


def test_a_handler_enqueues_where_its_worker_works(database, store):
    job = enqueue(store, task="enqueue_another")

    drain(database, *shop.app.registry)

    assert state_of(store, result_of(store, job)) == "succeeded"


def test_a_handler_inside_a_class_is_found(database, store):
    assert result_of(store, run(database, store, shop.Shop.close_shop)) == "closed"


# which handlers there are


def worker_for(*specs: TaskSpec) -> Worker:
    tasks = Registry()
    for spec in specs:
        tasks.add(spec)
    return Worker(tasks, Settings(dsn="dbname=shop"), WorkerConfig())


def at_the_top(job_id: int) -> None: ...


def test_a_worker_refuses_a_handler_that_a_child_could_not_import():
    app = Faultline("dbname=shop")

    @app.task(run="process")
    def nested() -> None: ...

    for spec in (
        nested.spec,
        spec_of(lambda: None, name="a_lambda", run="process"),
        spec_of(at_the_top, run="process"),  # what stands at this name is not the task
    ):
        with pytest.raises(ConfigError, match=f"task {spec.name} has run=.*could not find its handler"):
            worker_for(spec)


def test_a_worker_refuses_a_handler_typed_in_at_a_prompt(monkeypatch):
    main = sys.modules["__main__"]
    app = Faultline("dbname=shop")
    made: dict[str, Any] = {"__name__": "__main__", "app": app}
    exec('@app.task(run="process")\ndef typed() -> None: ...', made)
    monkeypatch.setattr(main, "typed", made["typed"], raising=False)
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.delattr(main, "__file__", raising=False)

    with pytest.raises(ConfigError, match="typed in at a prompt"):
        worker_for(made["typed"].spec)


def test_tasks_that_run_elsewhere_need_not_be_found():
    worker_for(spec_of(lambda: None, name="a_lambda"))


def test_a_module_that_only_the_worker_can_import_leaves_its_jobs_for_others(
    database, store, tmp_path, monkeypatch, caplog
):
    module = tmp_path / "only_here.py"
    module.write_text(
        "import os\nfrom faultline import Faultline\napp = Faultline()\n"
        f"if os.getpid() != {os.getpid()}:\n    raise RuntimeError('not in a child')\n"
        "@app.task(run='process')\ndef only() -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    only_here = importlib.import_module("only_here")

    job = enqueue(store, task="only")
    drain(database, *only_here.app.registry)

    assert outcomes(store, job) == ["snoozed"]
    (entry,) = store.run(calls.history(job))
    assert "could not import task only: RuntimeError: not in a child" in entry.error
    assert any("left for another worker" in record.message for record in caplog.records)


def test_a_process_that_dies_while_it_imports_costs_no_attempt(database, store, tmp_path, monkeypatch):
    module = tmp_path / "deadly.py"
    module.write_text(
        "import os\nfrom faultline import Faultline\napp = Faultline()\n"
        f"if os.getpid() != {os.getpid()}:\n    os._exit(9)\n"
        "@app.task(run='process')\ndef deadly() -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    deadly = importlib.import_module("deadly")

    job = enqueue(store, task="deadly")
    drain(database, *deadly.app.registry)

    (entry,) = store.run(calls.history(job))
    assert entry.outcome == "snoozed"
    assert "ended with exit code 9 while it imported its handlers" in entry.error


def test_a_task_that_was_defined_after_the_worker_had_started_is_left_for_others(database, store):
    with working(database, shop.pid.spec) as worker:
        worker.worker.tasks.add(shop.add.spec)
        job = enqueue(store, task="add", args='{"first": 1}')
        eventually(lambda: outcomes(store, job))

    (entry,) = store.run(calls.history(job))
    assert entry.outcome == "snoozed"
    assert "was defined after this worker had started" in entry.error


def test_a_script_that_starts_its_worker_unasked_does_not_start_workers_in_children(
    database, store, tmp_path
):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import asyncio\n"
        "from faultline import Faultline, WorkerConfig\n"
        "from faultline.runtime.run_worker import work\n"
        "app = Faultline()\n"
        "@app.task(run='process')\ndef only() -> None: ...\n"
        "asyncio.run(work(app.registry, app.settings, WorkerConfig(), stop_after=1))\n"
    )
    job = enqueue(store, task="only")

    run_script(script, database)

    (entry,) = store.run(calls.history(job))
    assert entry.outcome == "snoozed"
    assert "put what starts it under `if __name__" in entry.error


def test_a_script_may_hold_the_handlers_of_its_own_worker(database, store, tmp_path):
    script = tmp_path / "guarded.py"
    script.write_text(
        "import asyncio, os\n"
        "from dataclasses import dataclass\n"
        "from faultline import Faultline, WorkerConfig\n"
        "from faultline.runtime.run_worker import work\n"
        "app = Faultline()\n"
        "@dataclass\nclass Order:\n    id: int\n"
        "@app.task(run='process')\ndef only(order: Order) -> dict:\n"
        "    return {'order': order, 'name': __name__}\n"
        "if __name__ == '__main__':\n"
        "    asyncio.run(work(app.registry, app.settings, WorkerConfig(), stop_after=1))\n"
    )
    job = enqueue(store, task="only", args='{"order": {"id": 7}}')

    run_script(script, database)

    assert result_of(store, job) == {"order": {"id": 7}, "name": "__faultline_script__"}


def run_script(script: Path, database: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "FAULTLINE_DSN": database},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


# the processes


def test_a_child_is_kept_for_the_next_job(database, store):
    jobs = store.run(calls.enqueue_many([new_job(task="pid")] * 20))

    drain(database, *shop.app.registry, config=quick(jobs_max=1))

    assert len({result_of(store, job) for job in jobs}) == 1


def test_a_child_is_replaced_after_its_share_of_jobs(database, store):
    jobs = store.run(calls.enqueue_many([new_job(task="pid")] * 5))

    with working(database, *shop.app.registry, config=quick(jobs_max=1, recycle_after=2)):
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in jobs))
        pids = [result_of(store, job) for job in jobs]
        assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [2, 2, 1]
        eventually(lambda: [pid for pid in set(pids) if is_alive(pid)] == [pids[-1]])

    assert not is_alive(pids[-1])


def test_no_more_children_than_allowed_run_at_once(database, store):
    jobs = store.run(calls.enqueue_many([new_job(task="nap", args='{"seconds": 0.3}')] * 6))

    drain(database, *shop.app.registry, config=quick(jobs_max=6, children_max=2))

    assert len({result_of(store, job) for job in jobs}) == 2
    at_once, most = 0, 0
    for (said,) in rows(database, "select said from notes order by at"):
        at_once += 1 if said == "began" else -1
        most = max(most, at_once)
    assert most == 2


def test_a_child_with_nothing_to_do_is_let_go_after_a_while(database, store, monkeypatch):
    monkeypatch.setattr(child_pool, "IDLE_FOR", 0.2)
    with working(database, *shop.app.registry):
        job = enqueue(store, task="pid")
        pid = eventually(lambda: result_of(store, job))
        eventually(lambda: not is_alive(pid))
        again = enqueue(store, task="pid")
        assert eventually(lambda: result_of(store, again)) != pid


def test_children_of_a_worker_that_left_in_good_order_are_gone(database, store):
    with working(database, *shop.app.registry):
        job = enqueue(store, task="pid")
        pid = eventually(lambda: result_of(store, job))
        assert is_alive(pid)

    assert not is_alive(pid)


def test_the_loop_goes_on_while_a_child_computes(database, store):
    ticks = threading.Event()

    async def tick() -> None:
        ticks.set()

    with working(database, *shop.app.registry, spec_of(tick), config=quick(grace=timedelta(0))):
        job = enqueue(store, task="spin")
        eventually(lambda: rows(database, "select from notes where job_id = %s", job))
        enqueue(store, task="tick")
        assert ticks.wait(PATIENCE)
        assert state_of(store, job) == "running"


def test_a_child_that_cannot_be_started_costs_no_attempt(database, store, monkeypatch, caplog):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    job = run_without_pacemaker(database, store, monkeypatch)

    assert outcomes(store, job) == ["snoozed"]
    assert store.run(calls.get(job)).attempt == 0
    assert any("no child process could be started" in record.message for record in caplog.records)


def run_without_pacemaker(database: str, store: Any, monkeypatch: Any) -> int:
    async def nothing(self: Any) -> None: ...

    monkeypatch.setattr("faultline.worker.heartbeat.pacemaker_process.PacemakerProcess.start", nothing)
    return run(database, store, shop.pid)


# what is seen of them


def test_log_lines_and_prints_of_a_child_appear_as_the_workers_do(database, store, tmp_path):
    script = tmp_path / "telling.py"
    script.write_text(
        "import asyncio\n"
        "from faultline import WorkerConfig\n"
        "from faultline.runtime.run_worker import work\n"
        "from faultline.telemetry import configure_logging\n"
        "from tests.worker.children_app import app\n"
        "if __name__ == '__main__':\n"
        "    configure_logging(json=True, level='INFO')\n"
        "    asyncio.run(work(app.registry, app.settings, WorkerConfig(), stop_after=1))\n"
    )
    job = enqueue(store, task="tell")
    root = Path(__file__).parents[2]

    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "FAULTLINE_DSN": database, "PYTHONPATH": str(root)},
    )  # fmt: skip

    assert "on standard output" in done.stdout
    (line,) = [json.loads(line) for line in done.stderr.splitlines() if '"in a child"' in line]
    assert (line["level"], line["logger"], line["job_id"], line["task"]) == ("info", "shop", job, "tell")


def test_events_are_told_as_for_other_handlers(database, store, caplog):
    caplog.set_level(logging.DEBUG, "faultline.events")
    good, bad = enqueue(store, task="pid"), enqueue(store, task="fail")

    drain(database, *shop.app.registry)

    told = [
        (record.event, record.facts["job_id"], record.facts.get("outcome"), record.facts.get("error"))
        for record in caplog.records
        if getattr(record, "event", "").startswith("execution_")
    ]
    assert ("execution_started", good, None, None) in told
    assert ("execution_finished", good, "Done", None) in told
    assert ("execution_finished", bad, "Failed", "RuntimeError: the charge failed") in told
