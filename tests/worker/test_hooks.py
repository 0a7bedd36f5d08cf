"""Hooks: called at the start, at the end and after bad ends of attempts; none can break a job."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from faultline import Dead, Faultline, JobEvent
from faultline.errors import ConfigError
from faultline.retry import Constant
from faultline.store import calls
from faultline.worker import worker as worker_module
from faultline.worker.handlers import outcome_hooks
from scripts.docs.blocks import ROOT, blocks
from tests.support import LEASE, TAKE_OVER, claim_one, enqueue, outcomes, state_of
from tests.worker.harness import InProcess, eventually, execute, quick

AT_ONCE = Constant(timedelta(0))
GUIDE = ROOT / "docs/guides/middleware-and-resources.md"


def work_off(dsn: str, app: Faultline, **how: Any) -> None:
    InProcess(dsn, app.registry, quick(), until_empty=True, **how).start().join()


def work_until(dsn: str, app: Faultline, done: Callable[[], bool]) -> None:
    """For jobs that are tried again: the queue is empty before they are due again."""
    worker = InProcess(dsn, app.registry, quick()).start()
    try:
        eventually(done)
    finally:
        worker.leave()


def heard(app: Faultline) -> list[tuple[str, int, str | None]]:
    """What the hooks on outcomes are told: one of them is async, the others are plain."""
    said: list[tuple[str, int, str | None]] = []

    @app.on_failed
    async def failed(event: JobEvent) -> None:
        said.append((event.name, event.attempt, event.error))

    @app.on_dead
    @app.on_lost
    def others(event: JobEvent) -> None:
        said.append((event.name, event.attempt, event.error))

    return said


def test_a_job_that_fails_until_it_dies_is_told_each_time_and_at_its_death(database, store):
    app = Faultline()
    said = heard(app)

    @app.task(retry=AT_ONCE)
    async def work() -> None:
        raise ValueError("no such order")

    job = enqueue(store, task="work", max_attempts=2)

    work_until(database, app, lambda: len(said) == 3)

    assert [(name, attempt) for name, attempt, _ in said] == [("failed", 1), ("failed", 2), ("dead", 2)]
    assert all("no such order" in (error or "") for _, _, error in said)
    assert state_of(store, job) == "dead"


def test_a_job_that_is_given_up_and_one_that_succeeds(database, store):
    app = Faultline()
    said = heard(app)

    @app.task
    def work(gives_up: bool) -> Any:
        return Dead("the account is closed") if gives_up else "done"

    enqueue(store, task="work", args='{"gives_up": true}')
    enqueue(store, task="work", args='{"gives_up": false}')

    work_off(database, app)

    assert said == [("dead", 1, "the account is closed")]


def test_a_job_that_the_watchdog_buries_reaches_no_hook_and_the_guides_recipe_tells_it_once(
    database, store, clock, capsys
):
    app = Faultline()
    said = heard(app)

    @app.task
    async def work() -> None: ...

    job = enqueue(store, task="work", max_attempts=1)

    def dies() -> None:
        lease = claim_one(store)
        assert lease.job_id == job
        clock.advance(LEASE + timedelta(seconds=1))
        work_until(database, app, lambda: state_of(store, job) == "dead")

    paged: list[str] = []
    with psycopg.connect(database, autocommit=True) as conn:
        dies()
        tell = recipe("def tell_deaths", conn=conn)  # it ends with a call that prints
        tell(paged.append)
        assert paged == []

        store.run(calls.replay(job))
        dies()
        tell(paged.append)

    line = f"job {job} of work is dead: out of attempts: lease expired"
    assert (capsys.readouterr().out, paged, said) == (f"{line}\n", [line], [])


def recipe(head: str, **names: Any) -> Any:
    """The function of the guide that begins so."""
    (block,) = [each for each in blocks(GUIDE) if head in each.text]
    exec(compile(block.text, str(GUIDE), "exec"), names)
    return names[head.removeprefix("def ")]


def test_a_lost_lease_is_told(database, store):
    app = Faultline()
    said = heard(app)

    @app.task
    async def work() -> None:
        await asyncio.to_thread(execute, database, TAKE_OVER, job)

    job = enqueue(store, task="work")

    work_off(database, app)

    assert said == [("lost", 1, None)]


def test_a_hook_that_fails_or_hangs_breaks_no_job_and_no_other_hook(database, store, caplog, monkeypatch):
    monkeypatch.setattr(outcome_hooks, "HOOK_MAX", 1.0)
    monkeypatch.setattr(worker_module, "LEAVE_MAX", 60.0)
    app, over = Faultline(), threading.Event()

    @app.on_failed
    def raises(event: JobEvent) -> None:
        raise RuntimeError("a hook of ours")

    @app.on_failed
    def exits(event: JobEvent) -> None:
        raise SystemExit(3)

    @app.on_failed
    def hangs(event: JobEvent) -> None:
        over.wait(60)

    @app.on_failed
    async def hangs_too(event: JobEvent) -> None:
        await asyncio.sleep(60)

    @app.on_failed
    async def cancels(event: JobEvent) -> None:
        raise asyncio.CancelledError

    said = heard(app)

    @app.task(retry=AT_ONCE)
    async def work() -> None:
        raise ValueError("no such order")

    jobs = [enqueue(store, task="work", max_attempts=1) for _ in range(2)]

    try:
        work_off(database, app)
    finally:
        over.set()

    assert [outcomes(store, job) for job in jobs] == [["dead"]] * 2
    assert [name for name, _, _ in said].count("failed") == 2
    assert "a hook of ours" in caplog.text
    assert "hangs of job" in caplog.text
    assert "hangs_too of job" in caplog.text


def test_events_past_the_bound_are_left_out_and_that_is_told(database, store, caplog, monkeypatch):
    monkeypatch.setattr(outcome_hooks, "WAITING_MAX", 2)
    app, go_on = Faultline(), threading.Event()

    @app.on_failed
    def slow(event: JobEvent) -> None:
        go_on.wait(60)

    @app.task(retry=Constant(timedelta(hours=1)))
    async def work() -> None:
        raise ValueError("no such order")

    jobs = [enqueue(store, task="work") for _ in range(6)]

    worker = InProcess(database, app.registry, quick()).start()
    try:
        eventually(lambda: all(outcomes(store, job) == ["failed"] for job in jobs))
        eventually(lambda: "more of them are left out" in caplog.text)
    finally:
        go_on.set()
        worker.leave()


def test_startup_comes_before_the_first_job_and_shutdown_after_the_last(database, store):
    app, said = Faultline(), []

    @app.on_startup
    async def first() -> None:
        said.append("first")

    @app.on_startup
    def second() -> None:
        said.append("second")

    @app.on_shutdown
    def last() -> None:
        said.append("last")

    @app.on_shutdown
    async def before_that() -> None:
        said.append("before that")

    @app.task
    def work() -> None:
        said.append("run")

    enqueue(store, task="work")

    work_off(database, app)

    assert said == ["first", "second", "run", "before that", "last"]


def test_a_startup_hook_that_fails_keeps_the_worker_from_claiming(database, store):
    app = Faultline()

    @app.on_startup
    def begin() -> None:
        raise OSError("no settings")

    @app.task
    def work() -> None: ...

    job = enqueue(store, task="work")

    with pytest.raises(ConfigError, match=r"startup hook .*begin failed, so no job was claimed.*no settings"):
        work_off(database, app)
    assert state_of(store, job) == "queued"


def test_a_shutdown_hook_that_fails_is_logged_and_the_others_are_called(database, store, caplog):
    app, said = Faultline(), []

    @app.on_shutdown
    def first() -> None:
        said.append("called")

    @app.on_shutdown
    def failing() -> None:
        raise OSError("already gone")

    work_off(database, app)

    assert said == ["called"]
    assert "already gone" in caplog.text


def test_a_hook_takes_an_event():
    app = Faultline()

    with pytest.raises(ConfigError, match=r"@app.on_dead goes on a function that takes a JobEvent"):

        @app.on_dead
        def page() -> None: ...

    with pytest.raises(ConfigError, match=r"@app.on_dead .* without parentheses"):
        app.on_dead()
