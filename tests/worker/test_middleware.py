"""Middleware: around every run, in order, and around every enqueue."""

import logging
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from faultline import Faultline, Job, NewJob, SyncTransaction, Transaction
from faultline.errors import ConfigError, InputError
from faultline.outcome import Snooze
from faultline.retry import Constant
from faultline.store import calls
from faultline.worker.handlers.handler_calls import HandlerCalls
from tests.support import enqueue, outcomes
from tests.worker.harness import InProcess, quick, rows

LATER = Constant(timedelta(hours=1))
tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


def work_off(dsn: str, app: Faultline) -> None:
    InProcess(dsn, app.registry, quick(), until_empty=True).start().join()


@pytest.fixture(params=["async", "plain"])
def shop(request):
    """An app of one kind of handlers, its log, and a decorator for middleware of that kind."""
    app, said = Faultline(), []
    is_async = request.param == "async"

    def around(name: str, before=lambda job: None, value=lambda value: value) -> None:
        async def asynchronous(job: Job, call: Any) -> Any:
            said.append(f"{name} before")
            before(job)
            try:
                return value(await call())
            finally:
                said.append(f"{name} after")

        def plain(job: Job, call: Any) -> Any:
            said.append(f"{name} before")
            before(job)
            try:
                return value(call())
            finally:
                said.append(f"{name} after")

        app.middleware(asynchronous if is_async else plain)

    def task(then=lambda: None) -> None:
        async def asynchronous() -> Any:
            said.append("run")
            return then()

        def plain() -> Any:
            said.append("run")
            return then()

        app.task(name="work", retry=LATER)(asynchronous if is_async else plain)

    def task_in_transaction(then=lambda: None) -> None:
        async def asynchronous(tx: Transaction) -> Any:
            await tx.execute("insert into effects (job_id, token) values (0, 0)")
            return then()

        def plain(tx: SyncTransaction) -> Any:
            tx.execute("insert into effects (job_id, token) values (0, 0)")
            return then()

        app.task(name="work", retry=LATER)(asynchronous if is_async else plain)

    return app, said, around, task, task_in_transaction


def test_the_first_registered_is_the_outermost(database, store, shop):
    app, said, around, task, _ = shop
    around("outer")
    around("inner")
    task()
    job = enqueue(store, task="work")

    work_off(database, app)

    assert said == ["outer before", "inner before", "run", "inner after", "outer after"]
    assert outcomes(store, job) == ["succeeded"]


def test_it_may_change_the_result_and_the_context(database, store, shop):
    app, _, around, task, _ = shop
    around("one", before=lambda job: tenant.set(f"tenant of {job.id}"), value=lambda value: [value])
    task(tenant.get)
    job = enqueue(store, task="work")

    work_off(database, app)

    assert store.run(calls.get(job)).result == [f"tenant of {job}"]


def test_what_it_raises_fails_the_job_and_the_handler_does_not_run(database, store, shop):
    app, said, around, task, _ = shop

    def refuse(job: Job) -> None:
        raise PermissionError("not today")

    around("strict", before=refuse)
    task()
    job = enqueue(store, task="work")

    work_off(database, app)

    assert "run" not in said
    assert outcomes(store, job) == ["failed"]
    assert "not today" in (store.run(calls.get(job)).error or "")


def test_it_may_choose_another_outcome(database, store, shop):
    app, said, around, task, _ = shop

    def put_off(job: Job) -> None:
        raise Snooze(timedelta(hours=1), "closed")

    around("hours", before=put_off)
    task()
    job = enqueue(store, task="work")

    work_off(database, app)

    assert (outcomes(store, job), "run" in said) == (["snoozed"], False)


def test_the_transaction_is_inside_so_the_commit_is_seen(database, store, shop):
    app, _, around, _, task = shop
    seen: list[Any] = []

    def look(value: Any) -> Any:
        seen.append(rows(database, "select count(*) from effects"))
        return value

    around("look", value=look)
    task(lambda: "paid")
    job = enqueue(store, task="work")

    work_off(database, app)

    assert seen == [[(1,)]]
    assert store.run(calls.get(job)).result == "paid"


def test_a_value_changed_after_the_commit_is_told_and_not_recorded(database, store, shop, caplog):
    app, _, around, _, task = shop
    around("late", value=lambda value: "changed")
    task(lambda: "paid")
    job = enqueue(store, task="work")

    work_off(database, app)

    assert store.run(calls.get(job)).result == "paid"
    assert outcomes(store, job) == ["succeeded"]
    assert "returned a value after job.complete() had settled it" in caplog.text


def test_an_error_after_the_commit_leaves_the_success(database, store, shop, caplog):
    app, _, around, _, task = shop

    def late(value: Any) -> Any:
        raise OSError("the collector is away")

    around("late", value=late)
    task(lambda: "paid")
    job = enqueue(store, task="work")

    work_off(database, app)

    assert outcomes(store, job) == ["succeeded"]
    assert "the collector is away" in caplog.text


def test_an_error_that_middleware_swallows_makes_no_success_without_its_rows(database, store):
    app = Faultline()

    @app.middleware
    async def forgiving(job: Job, call: Any) -> Any:
        try:
            return await call()
        except ValueError:
            return "all is well"

    @app.task(retry=LATER)
    async def in_transaction(tx: Transaction) -> None:
        raise ValueError("no such order")

    @app.task(retry=LATER)
    async def without() -> None:
        raise ValueError("no such order")

    jobs = [enqueue(store, task=task) for task in ("in_transaction", "without")]

    work_off(database, app)

    assert [outcomes(store, job) for job in jobs] == [["failed"], ["succeeded"]]


def test_each_kind_goes_with_its_own_handlers_and_a_gap_is_told(database, store, caplog):
    caplog.set_level(logging.WARNING)
    app, said = Faultline(), []

    @app.middleware
    async def around(job: Job, call: Any) -> Any:
        said.append(job.task)
        return await call()

    @app.task
    async def first() -> None: ...

    @app.task
    def second() -> None: ...

    for task in ("first", "second"):
        enqueue(store, task=task)

    work_off(database, app)

    assert said == ["first"]
    assert "second" in caplog.text
    assert "async" in caplog.text


def test_a_handler_without_any_of_it_is_called_directly(database, store, monkeypatch):
    monkeypatch.setattr(HandlerCalls, "acall", None)
    monkeypatch.setattr(HandlerCalls, "call", None)
    app = Faultline()

    @app.task
    async def first() -> None: ...

    @app.task
    def second(job: Job) -> None: ...

    jobs = [enqueue(store, task=task) for task in ("first", "second")]

    work_off(database, app)

    assert [outcomes(store, job) for job in jobs] == [["succeeded"], ["succeeded"]]


def test_mistakes_are_told_where_they_are_made():
    app = Faultline()

    with pytest.raises(ConfigError, match="has to take job and call"):

        @app.middleware
        def around(job: Job) -> None: ...

    with pytest.raises(ConfigError, match="goes on a plain function"):

        @app.enqueue_middleware  # type: ignore[arg-type]
        async def stamp(new: NewJob) -> NewJob:
            return new


def test_every_new_job_passes_through_the_enqueue_middleware_in_order(store, database):
    app = Faultline(database)

    @app.enqueue_middleware
    def first(new: NewJob) -> NewJob:
        return msgspec.structs.replace(new, priority=3)

    @app.enqueue_middleware
    def second(new: NewJob) -> NewJob:
        return msgspec.structs.replace(new, priority=new.priority * 2, queue="billing")

    @app.task
    def work(number: int = 1) -> None: ...

    with app:
        one = work.enqueue(2).id
        (two,) = app.enqueue_many([work.new(3)])

    assert [(store.run(calls.get(id)).priority, store.run(calls.get(id)).queue) for id in (one, two)] == [
        (6, "billing"),
        (6, "billing"),
    ]


def test_what_enqueue_middleware_breaks_is_refused_before_anything_is_sent():
    app = Faultline("dbname=nowhere")

    @app.task
    def work() -> None: ...

    @app.enqueue_middleware
    def breaking(new: NewJob) -> Any:
        return broken

    broken: Any = None
    with pytest.raises(InputError, match="has to return a NewJob, not NoneType"):
        work.new()
    broken = NewJob(task="other", args="{}", max_attempts=1)
    with pytest.raises(InputError, match="made task 'other' of work"):
        work.new()


def test_middleware_that_forgets_to_await_is_told(database, store):
    app = Faultline()

    @app.middleware
    async def around(job: Job, call: Any) -> Any:
        return call()

    @app.task(max_attempts=1)
    async def work() -> None: ...

    job = enqueue(store, task="work", max_attempts=1)
    work_off(database, app)

    assert "write `return await call()`" in store.run(calls.get(job)).error
