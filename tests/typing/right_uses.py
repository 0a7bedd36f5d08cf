"""Everything a type checker must accept; nothing here is run."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, assert_type

from psycopg import AsyncConnection, Connection
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from sqlalchemy.orm import Session, sessionmaker

from faultline import JobEvent, SyncTransaction, Transaction, injected
from faultline.app import Faultline
from faultline.client import Handle, Task
from faultline.config import WorkerConfig
from faultline.job import Job, JobInfo, NewJob
from faultline.outcome import Snooze
from faultline.retry import Constant, Exponential, Retry, bury, ignore

app = Faultline()
app.transactions.register(AsyncSession, async_sessionmaker())
app.transactions.register(Session, sessionmaker())


class Model(BaseModel):
    id: int


@dataclass
class Order:
    id: int


@app.task
def plain(order_id: int, note: str = "") -> str:
    return note


@app.task
async def awaited(order_id: int, note: str = "") -> str:
    return note


@app.task
def with_job(job: Job, order_id: int, note: str = "") -> str:
    with job.complete(result="x") as tx:
        assert_type(tx, SyncTransaction)
    return note


@app.task(queue="billing", priority=-5, max_attempts=5, timeout=timedelta(minutes=1), name="shop.charge")
async def charge(job: Job, order: Order, *, note: str = "") -> int:
    async with job.complete() as tx:
        assert_type(tx, Transaction)
        tx.result = 1
    return 1


@app.task(
    retry=Retry(Exponential(), on={ValueError: bury, KeyError: ignore, OSError: Constant(timedelta(1))})
)
def nothing() -> None: ...


@app.task(retry=lambda attempt, error: timedelta(seconds=attempt))
async def nothing_with_job(job: Job) -> None: ...


@app.task(run="process")
def far_away(job: Job, order_id: int) -> str:
    return ""


@app.task
def loose(value: Any) -> str:
    return ""


@app.task
def looser(value: object, times: int = 1) -> str:
    return ""


@app.task
async def documents(value: dict[str, Any]) -> bool:
    return True


@app.task
def documents_with_job(job: Job, value: dict[str, object]) -> bool:
    return True


@app.task
async def loose_with_job(job: Job, value: dict[str, Any]) -> bool:
    return True


@app.task
async def in_transaction(tx: Transaction, order_id: int, note: str = "") -> str:
    tx.result = note
    return note


@app.task
def in_plain_transaction(tx: SyncTransaction, order_id: int, note: str = "") -> str:
    return note


@app.task(queue="billing")
async def in_transaction_with_job(job: Job, tx: Transaction, order_id: int) -> int:
    return order_id


@app.task
def in_plain_transaction_with_job(job: Job, tx: SyncTransaction, order_id: int) -> int:
    return order_id


@app.task
async def in_session(session: AsyncSession, order_id: int) -> int:
    return order_id


@app.task
def in_plain_session(session: Session, order_id: int) -> int:
    return order_id


@app.task
async def in_session_with_job(job: Job, session: AsyncSession, order: Order) -> int:
    return order.id


class LikeAsyncpg(Protocol):
    def is_in_transaction(self) -> bool: ...
    def transaction(self, *, isolation: str | None = None) -> object: ...
    async def execute(self, query: str, *args: object) -> str: ...


@app.task
async def in_asyncpg(conn: LikeAsyncpg, order_id: int) -> int:
    return order_id


@app.task(transaction="django")
def in_django(order_id: int) -> int:
    return order_id


@app.task
def of_a_dataclass(order: Order, note: str = "") -> int:
    return order.id


@app.task
def of_a_model(model: Model, note: str = "") -> int:
    return model.id


@app.task
def of_an_object_with_job(job: Job, value: object, times: int = 1) -> int:
    return times


class Client: ...


@app.resource
def client() -> Iterator[Client]:
    yield Client()


@app.resource(scope="job")
async def aclient(job: Job) -> AsyncIterator[Client]:
    yield Client()


@app.task
async def with_resource(order_id: int, client: Client = injected) -> int:
    return order_id


@app.task
async def with_all(job: Job, tx: Transaction, order_id: int, *, client: Client = injected) -> int:
    return order_id


@app.middleware
async def around(job: Job, call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()


@app.middleware
def plainly_around(job: Job, call: Callable[[], Any]) -> Any:
    return call()


@app.enqueue_middleware
def stamped(new: NewJob) -> NewJob:
    return new


@app.on_startup
async def begin() -> None: ...


@app.on_dead
def page(event: JobEvent) -> None:
    assert_type(event.error, str | None)


@app.task
def sleepy() -> Snooze | int:
    return Snooze(timedelta(seconds=1))


def sync_uses(conn: Connection[Any]) -> None:
    assert_type(plain.enqueue(7), Handle[str])
    assert_type(plain.enqueue(order_id=7, note="x"), Handle[str])
    assert_type(awaited.enqueue(7).result(), str)
    assert_type(with_job.enqueue(7, "x").result(timeout=5), str)
    assert_type(charge.enqueue(Order(7), note="x").result(timedelta(seconds=5)), int)
    assert_type(charge.enqueue_in(conn, Order(7)), Handle[int])
    assert_type(charge.new(Order(7)), NewJob)
    assert_type(charge.handle(7), Handle[int])
    assert_type(charge.handle(7).info(), JobInfo)
    assert_type(in_transaction.enqueue(7, note="x"), Handle[str])
    assert_type(in_plain_transaction.enqueue(7, "x"), Handle[str])
    assert_type(in_transaction_with_job.enqueue(order_id=7), Handle[int])
    assert_type(in_plain_transaction_with_job.enqueue(7), Handle[int])
    assert_type(in_session.enqueue(7), Handle[int])
    assert_type(in_plain_session.enqueue(7), Handle[int])
    assert_type(in_session_with_job.enqueue(Order(7)), Handle[int])
    assert_type(in_asyncpg.enqueue(7), Handle[int])
    assert_type(in_django.enqueue(7), Handle[int])
    assert_type(of_a_dataclass.enqueue(Order(7), note="x"), Handle[int])
    assert_type(of_a_model.enqueue(Model(id=7), "x"), Handle[int])
    assert_type(of_an_object_with_job.enqueue("x", times=2), Handle[int])
    assert_type(with_resource.enqueue(7), Handle[int])
    assert_type(with_all.enqueue(order_id=7), Handle[int])
    nothing.enqueue()
    nothing_with_job.enqueue()
    loose.enqueue({"any": "thing"})
    looser.enqueue("x", times=2)
    assert_type(documents.enqueue({"a": 1}), Handle[bool])
    assert_type(documents_with_job.enqueue({"a": 1}), Handle[bool])
    loose_with_job.enqueue({"a": 1})
    sleepy.enqueue()
    plain(7)
    with_job.using(queue="mail", key="order-7", key_for=timedelta(1), delay=timedelta(1)).enqueue(7)
    with_job.using(run_at=datetime.now(UTC), lease=timedelta(1), retry=Constant(timedelta(1))).enqueue(7)

    def many() -> Iterator[NewJob]:
        yield plain.new(7)
        yield charge.using(priority=1).new(Order(7))

    assert_type(plain.enqueue_many(many()), list[int])
    assert_type(app.enqueue_many([plain.new(7)]), list[int])
    assert_type(app.get(7), JobInfo)
    assert_type(app.jobs(state="dead", queue="mail", limit=10), list[JobInfo])
    assert_type(app.run_worker(), int)
    app.run_worker(queues="mail=5,default", concurrency=20, lease=timedelta(seconds=5), name="one")
    app.run_worker(config=WorkerConfig(recycle_after=10), until_empty=True)


async def async_uses(conn: AsyncConnection[Any]) -> None:
    assert_type(await plain.aenqueue(7), Handle[str])
    assert_type(await (await charge.aenqueue(Order(7))).aresult(5), int)
    assert_type(await charge.aenqueue_in(conn, Order(7)), Handle[int])
    assert_type(await plain.aenqueue_many([plain.new(7)]), list[int])
    assert_type(await app.aget(7), JobInfo)
    await app.acancel(7, "why")
    assert_type(await app.arun_worker(queues=["mail", "billing=5"], stop_after=7), int)
    await app.arun_worker(queues={"mail": None, "billing": 5}, grace=timedelta(0))


def takes_any_task(task: Task[[int], str]) -> None:
    task.enqueue(7)
