"""Which parameters are given by the worker, and what is refused where a task is defined."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import psycopg
import pytest
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from sqlalchemy.orm import Session, sessionmaker

from faultline import Faultline, Job, SyncTransaction, Transaction, injected
from faultline.errors import BadArguments, ConfigError
from faultline.task import spec_of


@dataclass
class Order:
    id: int


class Model(BaseModel):
    id: int


class Client:
    pass


async def in_transaction(tx: Transaction, order_id: int) -> None: ...
def in_plain_transaction(tx: SyncTransaction, order_id: int) -> None: ...
async def after_job(job: Job, tx: Transaction, order_id: int) -> None: ...
async def in_session(session: AsyncSession, order_id: int) -> None: ...
def in_plain_session(job: Job, session: Session, order_id: int) -> None: ...
async def noted(tx: Annotated[Transaction, "ours"], order_id: int) -> None: ...
async def with_resource(order_id: int, *, client: Client = injected) -> None: ...


@pytest.mark.parametrize(
    "handler",
    [in_transaction, in_plain_transaction, after_job, in_session, in_plain_session, noted, with_resource],
)
def test_what_the_worker_gives_is_no_argument(handler):
    spec = spec_of(handler)

    assert [argument.name for argument in spec.codec.arguments] == ["order_id"]
    assert spec.codec.encode((7,), {}) == '{"order_id":7}'
    assert spec.injection is not None


def test_it_can_not_be_given_by_a_caller():
    app = Faultline("dbname=shop")
    task: Any = app.task(in_transaction)

    with pytest.raises(BadArguments, match="tx"):
        task.new(tx=1, order_id=7)
    with pytest.raises(BadArguments, match="1 argument by position"):
        task.new(1, 7)


@pytest.mark.parametrize("hint", [int, str, Order, Model, Any, object, dict[str, Any], int | None])
def test_ordinary_first_parameters_stay_arguments(hint):
    def work(first): ...

    work.__annotations__["first"] = hint

    spec = spec_of(work)
    assert [argument.name for argument in spec.codec.arguments] == ["first"]
    assert spec.injection is None


async def not_first(order_id: int, tx: Transaction) -> None: ...
async def two(tx: Transaction, session: AsyncSession) -> None: ...
async def plain_in_async(tx: SyncTransaction) -> None: ...
def async_in_plain(tx: Transaction) -> None: ...
async def plain_session_in_async(session: Session) -> None: ...
async def with_default(tx: Transaction = None) -> None: ...
async def optional(tx: Transaction | None) -> None: ...
async def by_name(*, tx: Transaction) -> None: ...
async def before_job(tx: Transaction, job: Job) -> None: ...


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (not_first, "`tx: Transaction` must be the first parameter, or the one after `job`"),
        (two, "tx and session are both transactions, and a job commits in one"),
        (plain_in_async, "is async, and SyncTransaction is for plain functions"),
        (async_in_plain, "is a plain function, and Transaction is for async ones"),
        (plain_session_in_async, "is async, and Session is for plain functions"),
        (with_default, "leave its default out"),
        (optional, "annotate it `tx: Transaction`"),
        (by_name, "must be the first parameter"),
        (before_job, "`job: Job` must be the first parameter"),
    ],
)
def test_a_transaction_in_the_wrong_place_is_told(handler, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        spec_of(handler)


@pytest.mark.parametrize("option", ["django", True])
def test_a_job_commits_in_one_transaction(option):
    with pytest.raises(ConfigError, match="each ask for a transaction"):
        spec_of(in_plain_session, transaction=option)


def test_our_own_transaction_may_be_said_to_need_a_database():
    assert spec_of(in_transaction, transaction=True).transaction is True


def test_a_named_transaction_needs_a_provider_at_the_workers_start():
    app = Faultline("dbname=shop")

    @app.task(transaction="djnago")
    def work() -> None: ...

    with pytest.raises(ConfigError, match="transaction='djnago', and nothing provides it"):
        app.registry.check_injections()


@pytest.mark.parametrize(("kind", "maker"), [(AsyncSession, async_sessionmaker()), (Session, sessionmaker())])
def test_a_sessionmaker_is_registered_before_or_after_the_tasks(kind, maker):
    app = Faultline("dbname=shop")
    app.task(in_session if kind is AsyncSession else in_plain_session)

    app.transactions.register(kind, maker)

    app.registry.check_injections()


def test_any_type_may_be_registered_before_the_tasks_that_ask_for_it():
    app = Faultline("dbname=shop")

    class Connection:
        pass

    @asynccontextmanager
    async def maker():
        yield Connection()

    app.transactions.register(Connection, maker)

    @app.task
    async def work(conn: Connection, order_id: int) -> None: ...

    assert work.spec.injection.transaction is Connection


def test_mistakes_in_registering_are_told():
    app = Faultline("dbname=shop")
    app.transactions.register(Session, sessionmaker())

    with pytest.raises(ConfigError, match="a type has one"):
        app.transactions.register(Session, sessionmaker())
    with pytest.raises(ConfigError, match="is built in"):
        app.transactions.register(Transaction, lambda: None)
    with pytest.raises(ConfigError, match="takes a type first"):
        app.transactions.register("django", lambda: None)  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="has to be a function under @asynccontextmanager"):
        app.transactions.register(Client, lambda: None)
    with pytest.raises(ConfigError, match="put @asynccontextmanager above it, and yield"):
        app.transactions.register(AsyncSession, coroutine_of_session)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"is a generator, .* put @asynccontextmanager above it"):
        app.transactions.register(AsyncSession, generator_of_sessions)  # type: ignore[arg-type]


async def coroutine_of_session() -> AsyncSession:
    return AsyncSession()


async def generator_of_sessions() -> AsyncIterator[AsyncSession]:
    yield AsyncSession()


def test_a_maker_of_the_other_kind_of_session_is_told_by_name():
    app = Faultline("dbname=shop")
    app.transactions.register(AsyncSession, sessionmaker())  # type: ignore[arg-type]
    provider = app.transactions.find(AsyncSession)
    assert provider is not None

    async def begin() -> None:
        async with provider.begin():
            raise AssertionError

    with pytest.raises(ConfigError, match=r"made a sqlalchemy\.orm\.session\.Session, which is not an async"):
        asyncio.run(begin())


def test_a_drivers_own_connection_is_taken_for_a_transaction_that_is_not_registered():
    async def work(conn: psycopg.AsyncConnection[Any]) -> None: ...
    def with_session(conn: psycopg.Connection) -> None: ...

    assert spec_of(with_session).injection.transaction is psycopg.Connection


def test_a_resource_may_have_no_other_default():
    app = Faultline("dbname=shop")

    @app.resource
    def client() -> Iterator[Client]:
        yield Client()

    with pytest.raises(ConfigError, match="its default can only be `injected`"):

        @app.task
        def other(client: Client = Client()) -> None: ...  # noqa: B008
