"""Handlers in transactions of the app's own: SQLAlchemy, asyncpg, psycopg and Django."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import django
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL, Connection, create_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from faultline import Faultline, Job
from faultline.config import Settings
from faultline.outcome import Snooze
from faultline.retry import Constant
from faultline.store import calls
from faultline.worker.handlers import injected_transactions
from tests.conftest import a_database
from tests.support import TAKE_OVER, enqueue, outcomes
from tests.worker.harness import InProcess, drain, execute, quick, rows
from tests.worker.test_backend import NoLoans

LATER = Constant(timedelta(hours=1))
INSERT = "insert into effects (job_id, token, said) values (0, 0, 'written')"
KINDS = (
    "core",
    "core-async",
    "sqlalchemy",
    "sqlalchemy-async",
    "sqlalchemy-asyncpg",
    "asyncpg",
    "psycopg",
    "psycopg-async",
    "django",
)


def url_of(dsn: str, driver: str) -> URL:
    parts = conninfo_to_dict(dsn)
    return URL.create(
        f"postgresql+{driver}", username=str(parts["user"]), database=str(parts["dbname"]),
        query={"host": str(parts["host"]), "port": str(parts["port"])},
    )  # fmt: skip


def work_off(dsn: str, app: Faultline) -> None:
    InProcess(dsn, app.registry, quick(), until_empty=True).start().join()


def effects(dsn: str) -> int:
    ((count,),) = rows(dsn, "select count(*) from effects")
    return int(count)


class Shop:
    """An app with one task of a kind: it writes a row, then does something, over its own connection."""

    def __init__(self, kind: str, dsn: str) -> None:
        self.app = Faultline()
        self.conn: Any = None
        self.then: Any = lambda: None
        self.inside: Any = None
        """What is done with the connection, in place of the row."""
        getattr(self, kind.replace("-", "_"))(dsn)

    def work(self, write: Any) -> Any:
        (self.inside or write)()
        return self.then()

    async def awork(self, write: Any) -> Any:
        await (self.inside or write)()
        return await asyncio.to_thread(self.then)

    def sqlalchemy(self, dsn: str) -> None:
        engine = create_engine(url_of(dsn, "psycopg"), poolclass=NullPool)
        self.app.transactions.register(Session, sessionmaker(engine))

        @self.app.task(retry=LATER)
        def work(session: Session) -> Any:
            self.conn = session
            return self.work(lambda: session.execute(text(INSERT)))

    def sqlalchemy_async(self, dsn: str, driver: str = "psycopg") -> None:
        maker = async_sessionmaker(create_async_engine(url_of(dsn, driver), poolclass=NullPool))
        self.app.transactions.register(AsyncSession, maker)

        @self.app.task(retry=LATER)
        async def work(session: AsyncSession) -> Any:
            self.conn = session
            return await self.awork(lambda: session.execute(text(INSERT)))

    def core(self, dsn: str) -> None:
        engine = create_engine(url_of(dsn, "psycopg"), poolclass=NullPool)
        self.app.transactions.register(Connection, engine.connect)

        @self.app.task(retry=LATER)
        def work(conn: Connection) -> Any:
            self.conn = conn
            return self.work(lambda: conn.execute(text(INSERT)))

    def core_async(self, dsn: str) -> None:
        engine = create_async_engine(url_of(dsn, "asyncpg"), poolclass=NullPool)
        self.app.transactions.register(AsyncConnection, engine.connect)

        @self.app.task(retry=LATER)
        async def work(conn: AsyncConnection) -> Any:
            self.conn = conn
            return await self.awork(lambda: conn.execute(text(INSERT)))

    def sqlalchemy_asyncpg(self, dsn: str) -> None:
        self.sqlalchemy_async(dsn, "asyncpg")

    def asyncpg(self, dsn: str) -> None:
        parts = conninfo_to_dict(dsn)

        @asynccontextmanager
        async def maker() -> AsyncIterator[asyncpg.Connection]:
            conn = await asyncpg.connect(
                host=parts["host"], port=int(str(parts["port"])), user=parts["user"], database=parts["dbname"]
            )
            try:
                yield conn
            finally:
                await conn.close()

        self.app.transactions.register(asyncpg.Connection, maker)

        @self.app.task(retry=LATER)
        async def work(conn: asyncpg.Connection) -> Any:
            self.conn = conn
            return await self.awork(lambda: conn.execute(INSERT))

    def psycopg(self, dsn: str) -> None:
        self.app.transactions.register(psycopg.Connection, lambda: psycopg.connect(dsn))

        @self.app.task(retry=LATER)
        def work(conn: psycopg.Connection) -> Any:
            self.conn = conn
            return self.work(lambda: conn.execute(INSERT))

    def psycopg_async(self, dsn: str) -> None:
        @asynccontextmanager
        async def maker() -> AsyncIterator[psycopg.AsyncConnection[Any]]:
            async with await psycopg.AsyncConnection.connect(dsn) as conn:
                yield conn

        self.app.transactions.register(psycopg.AsyncConnection, maker)

        @self.app.task(retry=LATER)
        async def work(conn: psycopg.AsyncConnection) -> Any:
            self.conn = conn
            return await self.awork(lambda: conn.execute(INSERT))

    def django(self, dsn: str) -> None:
        connections = django_connections(dsn)

        @self.app.task(retry=LATER, transaction="django")
        def work() -> Any:
            self.conn = connections["default"]

            def write() -> None:
                with connections["default"].cursor() as cursor:
                    cursor.execute(INSERT)

            return self.work(write)


def django_connections(dsn: str) -> Any:
    """Django's connections, to this database; its settings are made once a process, so they are changed."""
    from django.conf import settings
    from django.db import connections

    parts = conninfo_to_dict(dsn)
    default = {
        "ENGINE": "django.db.backends.postgresql", "HOST": parts["host"], "PORT": parts["port"],
        "USER": parts["user"], "NAME": parts["dbname"],
    }  # fmt: skip
    if not settings.configured:
        settings.configure(DATABASES={"default": default}, USE_TZ=True)
        django.setup()
    connections.databases["default"].update(default)
    return connections


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, database: str) -> Shop:
    return Shop(request.param, database)


def throw(error: BaseException) -> Any:
    raise error


def test_rows_success_and_result_commit_together(database, store, shop):
    shop.then = lambda: {"paid": True}
    job = enqueue(store, task="work")

    work_off(database, shop.app)

    assert effects(database) == 1
    assert outcomes(store, job) == ["succeeded"]
    assert store.run(calls.get(job)).result == {"paid": True}
    assert store.run(calls.refusals(job)) == []


def test_an_exception_rolls_everything_back_and_fails_the_job(database, store, shop):
    shop.then = lambda: throw(ValueError("no such order"))
    job = enqueue(store, task="work")

    work_off(database, shop.app)

    assert (effects(database), outcomes(store, job)) == (0, ["failed"])


def test_another_outcome_rolls_everything_back_and_is_recorded(database, store, shop):
    shop.then = lambda: Snooze(timedelta(hours=1))
    job = enqueue(store, task="work")

    work_off(database, shop.app)

    assert (effects(database), outcomes(store, job)) == (0, ["snoozed"])


def test_a_lost_lease_rolls_everything_back_and_is_refused(database, store, shop):
    job = enqueue(store, task="work")
    shop.then = lambda: execute(database, TAKE_OVER, job)

    work_off(database, shop.app)

    assert effects(database) == 0
    (refusal,) = store.run(calls.refusals(job))
    assert refusal.reason == "token_mismatch"


@pytest.mark.parametrize(
    "kind", ["sqlalchemy", "sqlalchemy-async", "sqlalchemy-asyncpg", "core", "core-async"]
)
def test_a_handler_that_commits_the_session_itself_is_told_by_name(database, store, kind):
    shop = Shop(kind, database)
    shop.inside = lambda: shop.conn.commit()
    job = enqueue(store, task="work")

    work_off(database, shop.app)

    assert outcomes(store, job) == ["failed"]
    assert "TransactionEnded" in (store.run(calls.get(job)).error or "")


RAW = [kind for kind in KINDS if kind != "psycopg-async"]


def sent(shop: Shop, *statements: str) -> Any:
    """Statements as the user of each library writes them."""

    def each(act: Any) -> Any:
        results = [act(statement) for statement in statements]

        async def awaited() -> None:
            for result in results:
                await result

        return awaited() if results and inspect.isawaitable(results[0]) else None

    def django(statement: str) -> None:
        with shop.conn.cursor() as cursor:
            cursor.execute(statement)

    if hasattr(shop.conn, "in_atomic_block"):
        return lambda: each(django)
    return lambda: each(
        shop.conn.execute
        if isinstance(shop.conn, asyncpg.Connection | psycopg.Connection)
        else lambda statement: shop.conn.execute(text(statement))
    )


@pytest.mark.parametrize("kind", RAW)
def test_a_commit_sent_as_sql_is_told_by_name(database, store, kind):
    """Also where the driver begins anew at the next statement; with psycopg alone nothing shows that."""
    shop = Shop(kind, database)
    shop.inside = lambda: sent(shop, INSERT, "commit", *([] if kind == "psycopg" else [INSERT]))()
    job = enqueue(store, task="work")

    work_off(database, shop.app)

    assert outcomes(store, job) == ["failed"]
    assert "TransactionEnded" in (store.run(calls.get(job)).error or "")


@pytest.mark.parametrize("form", ["complete", "complete_in"])
def test_a_second_way_to_complete_the_job_is_refused_inside(database, store, form):
    app = Faultline()
    engine = create_engine(url_of(database, "psycopg"), poolclass=NullPool)
    app.transactions.register(Session, sessionmaker(engine))

    @app.task(retry=LATER)
    def work(job: Job, session: Session) -> None:
        session.execute(text(INSERT))
        if form == "complete_in":
            job.complete_in(session)
        else:
            with job.complete():
                pass

    job = enqueue(store, task="work")

    work_off(database, app)

    assert (effects(database), outcomes(store, job)) == (0, ["failed"])
    assert "TransactionOpen" in (store.run(calls.get(job)).error or "")


def test_a_provider_of_another_database_is_refused_by_name(server, template, database, store):
    for other in a_database(server, template):
        shop = Shop("sqlalchemy", other)
        job = enqueue(store, task="work")

        work_off(database, shop.app)

        assert outcomes(store, job) == ["failed"]
        assert "is in another database than its job" in (store.run(calls.get(job)).error or "")


def test_a_provider_of_a_database_without_faultline_is_refused_by_name(server, database, store):
    for other in a_database(server, None):
        shop = Shop("sqlalchemy-async", other)
        job = enqueue(store, task="work")

        work_off(database, shop.app)

        assert outcomes(store, job) == ["failed"]
        assert "is in another database than its job" in (store.run(calls.get(job)).error or "")


def test_a_worker_without_a_dsn_completes_jobs_in_the_apps_own_database(database, store):
    shop = Shop("sqlalchemy-asyncpg", database)
    job = enqueue(store, task="work")

    drain(None, *shop.app.registry, backend=NoLoans(Settings(dsn=database)))

    assert (effects(database), outcomes(store, job)) == (1, ["succeeded"])


def test_a_long_transaction_is_told_of_once_for_each_task(database, store, caplog, monkeypatch):
    monkeypatch.setattr(injected_transactions, "LONG", 0.0)
    caplog.set_level(logging.WARNING)
    shop = Shop("sqlalchemy", database)
    for _ in range(2):
        enqueue(store, task="work")

    work_off(database, shop.app)

    assert caplog.text.count("was open for") == 1
    assert "job.complete()" in caplog.text
