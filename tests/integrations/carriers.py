"""Each library's own way to connect, begin, write, and make a savepoint: what a user of it would write."""

import contextlib
import inspect
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, ClassVar, Protocol

import asyncpg
import django
import psycopg
import sqlalchemy as sa
from django.conf import settings
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool


async def done(value: Any) -> Any:
    """What a call gives, of a library that is awaited or of one that is not."""
    return await value if inspect.isawaitable(value) else value


@contextlib.asynccontextmanager
async def entered(block: Any) -> AsyncIterator[Any]:
    """A block of either kind, entered by `async with`."""
    if hasattr(block, "__aenter__"):
        async with block as value:
            yield value
    else:
        with block as value:
            yield value


def driven(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that waits for nothing, as those over a plain library do, outside any loop."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it waited for something")


class Ways(Protocol):
    is_async: bool

    def begin(self, isolation: str | None = None) -> Any: ...
    def savepoint(self, tx: Any) -> Any: ...
    def execute(self, tx: Any, sql: str) -> Any: ...
    def autocommit(self) -> Any: ...
    def leave(self, block: Any) -> None: ...
    def close(self) -> None: ...
    async def aclose(self) -> None: ...


def level(isolation: str | None) -> IsolationLevel | None:
    return None if isolation is None else IsolationLevel[isolation.replace(" ", "_")]


class Psycopg:
    is_async = False

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    @contextlib.contextmanager
    def begin(self, isolation: str | None = None) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.dsn) as conn:
            conn.isolation_level = level(isolation)
            yield conn

    def savepoint(self, tx: psycopg.Connection[Any]) -> Any:
        tx.execute("select 1")
        return tx.transaction()

    def execute(self, tx: psycopg.Connection[Any], sql: str) -> Any:
        tx.execute(sql.encode())

    def autocommit(self) -> Any:
        return psycopg.connect(self.dsn, autocommit=True)

    def leave(self, block: Any) -> None:
        block.__exit__(None, None, None)

    def close(self) -> None: ...


class RawPsycopg(Psycopg):
    """With a user's own cursor factory and rows, which take no names and give no tuples."""

    @contextlib.contextmanager
    def begin(self, isolation: str | None = None) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(
            self.dsn, cursor_factory=psycopg.RawCursor, row_factory=psycopg.rows.dict_row
        ) as conn:
            conn.isolation_level = level(isolation)
            yield conn


class AsyncPsycopg:
    is_async = True

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    @contextlib.asynccontextmanager
    async def begin(self, isolation: str | None = None) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        async with await psycopg.AsyncConnection.connect(self.dsn) as conn:
            await conn.set_isolation_level(level(isolation))
            yield conn

    @contextlib.asynccontextmanager
    async def savepoint(self, tx: psycopg.AsyncConnection[Any]) -> AsyncIterator[None]:
        await tx.execute("select 1")
        async with tx.transaction():
            yield

    async def execute(self, tx: psycopg.AsyncConnection[Any], sql: str) -> Any:
        await tx.execute(sql.encode())

    @contextlib.asynccontextmanager
    async def autocommit(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        async with await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as conn:
            yield conn

    async def aclose(self) -> None: ...
    def close(self) -> None: ...


class Asyncpg:
    """With codecs of the user's own, which must not encode our documents again."""

    is_async = True

    def __init__(self, dsn: str) -> None:
        parts = conninfo_to_dict(dsn)
        self._parts = {
            "host": parts["host"], "port": parts["port"], "user": parts["user"], "database": parts["dbname"],
        }  # fmt: skip

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        import json

        conn = await asyncpg.connect(**self._parts)
        try:
            for kind in ("json", "jsonb"):
                await conn.set_type_codec(kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
            yield conn
        finally:
            await conn.close()

    @contextlib.asynccontextmanager
    async def begin(self, isolation: str | None = None) -> AsyncIterator[Any]:
        level = isolation and isolation.lower().replace(" ", "_")
        async with self._connected() as conn, conn.transaction(isolation=level):
            yield conn

    def savepoint(self, tx: Any) -> Any:
        return tx.transaction()

    async def execute(self, tx: Any, sql: str) -> Any:
        await tx.execute(sql)

    def autocommit(self) -> Any:
        return self._connected()

    async def aclose(self) -> None: ...
    def close(self) -> None: ...


class PooledAsyncpg(Asyncpg):
    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        async with asyncpg.create_pool(**self._parts, min_size=1, max_size=1) as pool, pool.acquire() as conn:
            yield conn


def url(dsn: str, driver: str) -> sa.URL:
    parts = conninfo_to_dict(dsn)
    where = {"host": str(parts["host"]), "port": str(parts["port"])}
    return sa.URL.create(
        f"postgresql+{driver}", username=str(parts["user"]), database=str(parts["dbname"]), query=where
    )


class CoreConnection:
    is_async = False
    driver = "psycopg"

    def __init__(self, dsn: str) -> None:
        self.engine = sa.create_engine(url(dsn, self.driver), poolclass=NullPool)

    @contextlib.contextmanager
    def begin(self, isolation: str | None = None) -> Iterator[Any]:
        engine = self.engine.execution_options(isolation_level=isolation) if isolation else self.engine
        with engine.begin() as conn:
            yield conn

    def savepoint(self, tx: Any) -> Any:
        return tx.begin_nested()

    def execute(self, tx: Any, sql: str) -> Any:
        tx.execute(sa.text(sql))

    @contextlib.contextmanager
    def autocommit(self) -> Iterator[Any]:
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            yield conn

    def leave(self, block: Any) -> None:
        block.__exit__(None, None, None)

    def close(self) -> None:
        self.engine.dispose()


class CoreOverPsycopg2(CoreConnection):
    driver = "psycopg2"


class OrmSession(CoreConnection):
    @contextlib.contextmanager
    def begin(self, isolation: str | None = None) -> Iterator[Session]:
        engine = self.engine.execution_options(isolation_level=isolation) if isolation else self.engine
        with sessionmaker(engine).begin() as session:
            yield session

    @contextlib.contextmanager
    def autocommit(self) -> Iterator[Session]:
        engine = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        with Session(engine) as session:
            yield session


class AsyncCore:
    is_async = True
    driver = "asyncpg"

    def __init__(self, dsn: str) -> None:
        self.engine = create_async_engine(url(dsn, self.driver), poolclass=NullPool)

    @contextlib.asynccontextmanager
    async def begin(self, isolation: str | None = None) -> AsyncIterator[Any]:
        engine = self.engine.execution_options(isolation_level=isolation) if isolation else self.engine
        async with engine.begin() as conn:
            yield conn

    def savepoint(self, tx: Any) -> Any:
        return tx.begin_nested()

    async def execute(self, tx: Any, sql: str) -> Any:
        await tx.execute(sa.text(sql))

    @contextlib.asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Any]:
        async with self.engine.connect() as conn:
            yield await conn.execution_options(isolation_level="AUTOCOMMIT")

    async def aclose(self) -> None:
        await self.engine.dispose()

    def close(self) -> None: ...


class AsyncOrm(AsyncCore):
    @contextlib.asynccontextmanager
    async def begin(self, isolation: str | None = None) -> AsyncIterator[AsyncSession]:
        engine = self.engine.execution_options(isolation_level=isolation) if isolation else self.engine
        async with async_sessionmaker(engine).begin() as session:
            yield session

    @contextlib.asynccontextmanager
    async def autocommit(self) -> AsyncIterator[AsyncSession]:
        engine = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        async with AsyncSession(engine) as session:
            yield session


class AsyncOrmOverPsycopg(AsyncOrm):
    driver = "psycopg"


class Django:
    """`transaction.atomic()` on a connection of Django, with its usual, client-side binding."""

    is_async = False
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, dsn: str) -> None:
        if not settings.configured:
            settings.configure(DATABASES={}, USE_TZ=True)
            django.setup()
        from django.db import connections

        parts = conninfo_to_dict(dsn)
        self._connections = connections
        connections.databases["jobs"] = {
            "ENGINE": "django.db.backends.postgresql", "NAME": parts["dbname"], "USER": parts["user"],
            "HOST": parts["host"], "PORT": parts["port"], "PASSWORD": "", "OPTIONS": dict(self.options),
            "ATOMIC_REQUESTS": False, "AUTOCOMMIT": True, "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False,
            "TIME_ZONE": None, "TEST": {},
        }  # fmt: skip

    @contextlib.contextmanager
    def begin(self, isolation: str | None = None) -> Iterator[Any]:
        from django.db import transaction

        conn = self._connections["jobs"]
        try:
            with transaction.atomic(using="jobs"):
                if isolation is not None:
                    with conn.cursor() as cursor:
                        cursor.execute(f"set transaction isolation level {isolation}")
                yield conn
        finally:
            if not conn.in_atomic_block:
                conn.close()

    def savepoint(self, tx: Any) -> Any:
        from django.db import transaction

        return transaction.atomic(using="jobs")

    def execute(self, tx: Any, sql: str) -> Any:
        with tx.cursor() as cursor:
            cursor.execute(sql)

    @contextlib.contextmanager
    def autocommit(self) -> Iterator[Any]:
        conn = self._connections["jobs"]
        yield conn
        conn.close()

    def leave(self, block: Any) -> None:
        block.__exit__(None, None, None)

    def close(self) -> None:
        self._connections["jobs"].close()
        del self._connections["jobs"]


class DjangoBindingOnServer(Django):
    options: ClassVar[dict[str, Any]] = {"server_side_binding": True}


CARRIERS = [
    Psycopg, RawPsycopg, AsyncPsycopg, Asyncpg, PooledAsyncpg, CoreConnection, CoreOverPsycopg2, OrmSession,
    AsyncCore, AsyncOrm, AsyncOrmOverPsycopg, Django, DjangoBindingOnServer,
]  # fmt: skip
