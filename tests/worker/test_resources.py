"""Resources: opened when first needed, once a process or once a job, and closed in reverse order."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

import pytest

from faultline import Faultline, Job, SyncTransaction, Transaction, injected
from faultline.errors import ConfigError
from faultline.retry import Constant
from faultline.store import calls
from tests.support import enqueue, outcomes
from tests.worker.harness import InProcess, drain, eventually, quick, rows

AT_ONCE = Constant(timedelta(0))


class Client:
    def __init__(self, name: str = "") -> None:
        self.name = name


class Second:
    pass


@dataclass
class Number:
    value: int


def work_off(dsn: str, app: Faultline, **changes) -> None:
    InProcess(dsn, app.registry, quick(**changes), until_empty=True).start().join()


def work_until(dsn: str, app: Faultline, done: Callable[[], bool]) -> None:
    """For jobs that are tried again: the queue is empty before they are due again."""
    worker = InProcess(dsn, app.registry, quick()).start()
    try:
        eventually(done)
    finally:
        worker.leave()


@pytest.fixture(params=["async", "plain"])
def shop(request):
    """An app with two resources of a process, one of a job, and what was done to them."""
    return async_shop() if request.param == "async" else plain_shop()


def async_shop():
    app, done = Faultline(), []

    @app.resource
    async def client() -> AsyncIterator[Client]:
        done.append("open client")
        yield Client()
        done.append("close client")

    @app.resource
    @asynccontextmanager
    async def second() -> AsyncIterator[Second]:
        done.append("open second")
        yield Second()
        done.append("close second")

    @app.resource(scope="job")
    async def of_job(job: Job) -> AsyncIterator[Number]:
        done.append(f"open for {job.attempt}")
        yield Number(job.attempt)
        done.append(f"close for {job.attempt}")

    @app.task(retry=AT_ONCE)
    async def work(fails: bool = False, client: Client = injected, second: Second = injected) -> int:
        if fails:
            raise ValueError("no")
        return id(client)

    @app.task(retry=AT_ONCE)
    async def once(job: Job, tx: Transaction, of_job: Number) -> int:
        done.append("run")
        if job.attempt == 1:
            raise ValueError("no")
        return of_job.value

    return app, done


def plain_shop():
    app, done = Faultline(), []

    @app.resource
    def client() -> Iterator[Client]:
        done.append("open client")
        yield Client()
        done.append("close client")

    @app.resource
    def second() -> Iterator[Second]:
        done.append("open second")
        yield Second()
        done.append("close second")

    @app.resource(scope="job")
    def of_job(job: Job) -> Iterator[Number]:
        done.append(f"open for {job.attempt}")
        yield Number(job.attempt)
        done.append(f"close for {job.attempt}")

    @app.task(retry=AT_ONCE)
    def work(fails: bool = False, client: Client = injected, second: Second = injected) -> int:
        if fails:
            raise ValueError("no")
        return id(client)

    @app.task(retry=AT_ONCE)
    def once(job: Job, tx: SyncTransaction, of_job: Number) -> int:
        done.append("run")
        if job.attempt == 1:
            raise ValueError("no")
        return of_job.value

    return app, done


def test_one_of_a_process_is_opened_once_and_closed_in_reverse_at_the_end(database, store, shop):
    app, done = shop
    jobs = [enqueue(store, task="work") for _ in range(8)]

    work_off(database, app)

    assert done == ["open client", "open second", "close second", "close client"]
    assert len({store.run(calls.get(job)).result for job in jobs}) == 1


def test_nothing_is_opened_that_no_job_asks_for(database, store, shop):
    app, done = shop

    work_off(database, app)

    assert done == []


def test_one_of_a_job_is_opened_for_each_attempt_outside_its_transaction(database, store, shop):
    app, done = shop
    job = enqueue(store, task="once")

    work_until(database, app, lambda: outcomes(store, job) == ["failed", "succeeded"])

    assert [said for said in done if said != "close for 1"] == [
        "open for 1",
        "run",
        "open for 2",
        "run",
        "close for 2",
    ]
    assert store.run(calls.get(job)).result == 2


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("scope", ["process", "job"])
def test_one_that_cannot_be_opened_fails_the_job_by_name_and_is_tried_again(database, store, plain, scope):
    app, tries = Faultline(), []

    def opened() -> Client:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("no route to host")
        return Client("second try")

    if plain:

        @app.resource(scope=scope)
        def client() -> Iterator[Client]:
            yield opened()

        @app.task(retry=AT_ONCE)
        def work(client: Client) -> str:
            return client.name

    else:

        @app.resource(scope=scope)
        async def aclient() -> AsyncIterator[Client]:
            yield opened()

        @app.task(name="work", retry=AT_ONCE)
        async def awork(client: Client) -> str:
            return client.name

    job = enqueue(store, task="work")

    work_until(database, app, lambda: outcomes(store, job) == ["failed", "succeeded"])

    assert store.run(calls.get(job)).result == "second try"
    ((error,),) = rows(database, "select error from faultline.ledger where outcome = 'failed'")
    assert "ResourceFailed" in error
    assert "client could not be opened: OSError: no route to host" in error


def test_jobs_that_wait_for_the_same_one_have_it_opened_once(database, store):
    app, opened = Faultline(), []

    @app.resource
    async def client() -> AsyncIterator[Client]:
        opened.append(1)
        await asyncio.sleep(0.2)
        yield Client()

    @app.task
    async def work(client: Client) -> None: ...

    for _ in range(4):
        enqueue(store, task="work")

    work_off(database, app)

    assert opened == [1]


def test_a_resource_that_swallows_the_handlers_error_makes_no_success_of_it(database, store):
    app = Faultline()

    @app.resource(scope="job")
    async def forgiving() -> AsyncIterator[Client]:
        with suppress(ValueError):
            yield Client()

    @app.task(retry=Constant(timedelta(hours=1)))
    async def work(client: Client) -> str:
        raise ValueError("not forgiven")

    job = enqueue(store, task="work")

    work_off(database, app)

    assert outcomes(store, job) == ["failed"]


def test_one_that_cannot_be_closed_is_logged_and_harms_nothing(database, store, caplog):
    app, done = Faultline(), []

    @app.resource
    def client() -> Iterator[Client]:
        yield Client()
        done.append("closed")

    @app.resource
    def second() -> Iterator[Second]:
        yield Second()
        raise OSError("it is gone")

    @app.task
    def work(client: Client, second: Second) -> None: ...

    job = enqueue(store, task="work")

    work_off(database, app)

    assert outcomes(store, job) == ["succeeded"]
    assert done == ["closed"]
    assert "second could not be closed" in caplog.text


def test_plain_ones_are_shared_by_threads(database, store):
    app, threads = Faultline(), set()

    @app.resource
    def client() -> Iterator[Client]:
        yield Client(threading.current_thread().name)

    @app.task
    def work(client: Client) -> str:
        threads.add(threading.current_thread().name)
        return client.name

    jobs = [enqueue(store, task="work") for _ in range(20)]

    work_off(database, app)

    assert len({store.run(calls.get(job)).result for job in jobs}) == 1


def test_mistakes_are_told_where_they_are_made():
    app = Faultline()

    with pytest.raises(ConfigError, match="return annotation has to name the type"):

        @app.resource
        def untyped():
            yield 1

    with pytest.raises(ConfigError, match="it takes no parameters"):

        @app.resource
        def asking(job: Job) -> Iterator[Client]:
            yield Client()

    with pytest.raises(ConfigError, match="yield it"):

        @app.resource
        async def returning() -> Client:
            return Client()

    with pytest.raises(ConfigError, match='scope is "process" or "job"'):

        @app.resource(scope="thread")  # type: ignore[call-overload]
        def scoped() -> Iterator[Client]:
            yield Client()

    @app.resource
    def client() -> Iterator[Client]:
        yield Client()

    with pytest.raises(ConfigError, match="a type has one resource"):
        app.resource(client)


def test_a_resource_that_is_not_there_keeps_the_worker_from_starting(database):
    app = Faultline()

    @app.task
    def work(client: Client = injected) -> None: ...

    with pytest.raises(ConfigError, match=r"no resource of type .*Client is registered"):
        drain(database, *app.registry)


def test_a_resource_for_the_other_kind_of_handler_is_told(database):
    app = Faultline()

    @app.resource
    async def client() -> AsyncIterator[Client]:
        yield Client()

    @app.task
    def work(client: Client) -> None: ...

    with pytest.raises(ConfigError, match="is for async ones"):
        app.registry.check_injections()


def test_one_registered_after_a_task_takes_no_argument_away():
    app = Faultline()

    @app.task
    def work(settings: Number) -> None: ...

    @app.resource
    def settings() -> Iterator[Number]:
        yield Number(1)

    with pytest.raises(ConfigError, match="registered after the task"):
        app.registry.check_injections()
