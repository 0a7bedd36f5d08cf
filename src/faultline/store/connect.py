"""Make a connection that can be worked with, or say in one line why not."""

import select
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import make_conninfo

from faultline import errors
from faultline.config import redact
from faultline.store import hello
from faultline.store.faults import named, named_errors

CONNECT_SECONDS_MAX = 10
SCHEMA_QUESTION = (
    "select max(migration.number), max(setting.oldest_client) from faultline.migrations as migration, faultline.settings as setting"
)


def conninfo(dsn: str, name: str = "faultline") -> str:
    """The DSN with our habits added: a bounded wait, keepalives that notice a dead peer, a name for people to see."""
    habits: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS_MAX,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "application_name": name,
    }
    try:
        known = psycopg.conninfo.conninfo_to_dict(dsn)
        return make_conninfo(dsn, **{habit: value for habit, value in habits.items() if habit not in known})
    except psycopg.ProgrammingError as fault:
        raise errors.CannotConnect(f"the DSN {redact(dsn)!r} cannot be read: {str(fault).strip()}; check FAULTLINE_DSN") from fault


def connect(dsn: str, **options: Any) -> Connection[Any]:
    try:
        return psycopg.connect(conninfo(dsn), autocommit=True, **options)
    except psycopg.Error as fault:
        raise cannot_connect(dsn, fault) from fault


async def aconnect(dsn: str, **options: Any) -> AsyncConnection[Any]:
    try:
        return await AsyncConnection.connect(conninfo(dsn), autocommit=True, **options)
    except psycopg.Error as fault:
        raise cannot_connect(dsn, fault) from fault


def cannot_connect(dsn: str, fault: psycopg.Error) -> Exception:
    said = [line for line in str(fault).strip().splitlines() if line] or [type(fault).__name__]
    if "permission denied" in str(fault):
        return named(fault)
    return errors.CannotConnect(f"cannot connect to {redact(dsn)}: {said[-1].strip()}; check FAULTLINE_DSN and that the server runs")


def greet(conn: Connection[Any]) -> None:
    """Check that the server and its schema are ones this program can work with."""
    with named_errors():
        hello.judge(*(conn.execute(hello.QUESTION).fetchone() or ()))
        hello.judge_schema(conn.execute(SCHEMA_QUESTION).fetchone())


async def agreet(conn: AsyncConnection[Any]) -> None:
    with named_errors():
        hello.judge(*(await (await conn.execute(hello.QUESTION)).fetchone() or ()))
        hello.judge_schema(await (await conn.execute(SCHEMA_QUESTION)).fetchone())


def check_quiet(conn: Connection[Any] | AsyncConnection[Any]) -> None:
    """Refuse a pooled connection the server has spoken on while it lay idle: it said goodbye.

    A look at the socket, where a round trip would cost each enqueue a tenth of a millisecond.
    """
    if select.select([conn.fileno()], [], [], 0)[0]:
        conn.pgconn.consume_input()
        if conn.pgconn.notifies() is None and conn.pgconn.status != psycopg.pq.ConnStatus.OK:
            raise psycopg.OperationalError("the server closed this connection while it lay idle")


async def acheck_quiet(conn: AsyncConnection[Any]) -> None:
    check_quiet(conn)
