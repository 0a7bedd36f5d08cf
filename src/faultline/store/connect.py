"""Make a connection that can be worked with, or say in one line why not."""

import re
import select
from typing import Any, TypeVar, overload

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import make_conninfo

from faultline import errors
from faultline.config import redact
from faultline.store import hello
from faultline.store.faults import connect_reason, named, named_errors
from faultline.store.hosts import CONNECT_SECONDS_MAX, OldPrimary
from faultline.store.lean import LeanConnection, PlainConnection

C = TypeVar("C", bound=AsyncConnection[Any])

UNHEARD_MILLISECONDS_MAX = 15_000
"""How long a sent call may stay unacknowledged; keepalives say nothing while one is under way."""
_QUOTED = re.compile(r'"[^"]*"')
STALE = "the server was given up, or one of a later epoch seen, since this connection was made"
SCHEMA_QUESTION = "select * from faultline.schema_version()"
PID_QUESTION = "select pg_backend_pid()"


def conninfo(dsn: str, name: str = "faultline") -> str:
    """The DSN with our habits added: bounded waits, keepalives that notice a dead peer, a name to see."""
    habits: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS_MAX,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": UNHEARD_MILLISECONDS_MAX,
        "application_name": name,
        "client_encoding": "UTF8",  # without one, a database in SQL_ASCII would give bytes for text
    }
    if "=" not in dsn and "://" not in dsn:
        raise errors.ConfigError(
            "the DSN is neither a URL, such as postgresql://user@host/database, nor pairs, such as host=db "
            "dbname=shop; check FAULTLINE_DSN, dsn=... or --dsn"
        )
    if _password_is_not_escaped(dsn):
        raise errors.ConfigError(
            "the DSN's password holds a character that a URL needs escaped, %40 for @ and %2F for /; "
            "check FAULTLINE_DSN, dsn=... or --dsn"
        )
    try:
        known = psycopg.conninfo.conninfo_to_dict(dsn)
        return make_conninfo(dsn, **{habit: value for habit, value in habits.items() if habit not in known})
    except psycopg.ProgrammingError as fault:
        # libpq quotes what it could not read, which may be half a password: so no quotes, and no cause.
        reason = _QUOTED.sub("...", str(fault).strip())
    raise errors.ConfigError(
        f"the DSN {redact(dsn)!r} cannot be read: {reason}; check FAULTLINE_DSN, dsn=... or --dsn"
    )


def _password_is_not_escaped(dsn: str) -> bool:
    """True where libpq would take a part of the password for the host or the port, and say so."""
    _, found, rest = dsn.partition("://")
    if not found:
        return False
    authority, _, path = rest.partition("?")[0].partition("/")
    _, colon, port = authority.rpartition(":")
    begins_a_port = "@" not in authority and "@" in path and colon == ":" and not port.isdigit()
    return begins_a_port or authority.count("@") > 1


def connect(dsn: str, **options: Any) -> PlainConnection:
    try:
        return PlainConnection.connect(conninfo(dsn), autocommit=True, **options)
    except psycopg.Error as fault:
        raise cannot_connect(dsn, fault) from fault


@overload
async def aconnect(dsn: str, **options: Any) -> AsyncConnection[Any]: ...
@overload
async def aconnect(dsn: str, kind: type[C], **options: Any) -> C: ...
async def aconnect(
    dsn: str, kind: type[AsyncConnection[Any]] = LeanConnection, **options: Any
) -> AsyncConnection[Any]:
    try:
        return await kind.connect(conninfo(dsn), autocommit=True, **options)
    except psycopg.Error as fault:
        raise cannot_connect(dsn, fault) from fault


def cannot_connect(dsn: str, fault: psycopg.Error) -> Exception:
    if "permission denied" in str(fault):
        return named(fault)
    if isinstance(fault, OldPrimary):
        return errors.OldPrimary(f"{fault}; nothing was sent; it is looked for again")
    return errors.CannotConnect(
        f"cannot connect to {redact(dsn)}: {connect_reason(fault)}; check FAULTLINE_DSN, dsn=... or "
        "--dsn, and that the server runs"
    )


def greet(conn: Connection[Any]) -> bool:
    """Check that the server and its schema are ones this program can work with.

    Answers whether a pooler stands before it: that one makes up the process id it tells its clients.
    """
    with named_errors():
        hello.judge(*(conn.execute(hello.QUESTION).fetchone() or ()))
        hello.judge_schema(conn.execute(SCHEMA_QUESTION).fetchone())
        return conn.execute(PID_QUESTION).fetchone() != (conn.info.backend_pid,)


async def agreet(conn: AsyncConnection[Any]) -> bool:
    with named_errors():
        hello.judge(*(await (await conn.execute(hello.QUESTION)).fetchone() or ()))
        hello.judge_schema(await (await conn.execute(SCHEMA_QUESTION)).fetchone())
        return await (await conn.execute(PID_QUESTION)).fetchone() != (conn.info.backend_pid,)


def check_quiet(conn: Connection[Any] | AsyncConnection[Any]) -> None:
    """Refuse a pooled connection the server has spoken on while it lay idle: it said goodbye.

    A look at the socket, where a round trip would cost each enqueue a tenth of a millisecond.
    """
    # poll, because select refuses descriptors past 1,023; and until there is nothing left to read, because
    # the
    # server's last words come before the end, and only the end raises.
    socket = select.poll()
    socket.register(conn.fileno(), select.POLLIN)
    while socket.poll(0):
        conn.pgconn.consume_input()


async def acheck_quiet(conn: AsyncConnection[Any]) -> None:
    check_quiet(conn)


def check_lent(conn: PlainConnection) -> None:
    """Refuse a pooled connection that the server has left, or whose server was left behind by a newer one."""
    check_quiet(conn)
    if conn.is_stale:
        conn.close()  # or the pool would lend it again
        raise psycopg.OperationalError(STALE)


async def acheck_lent(conn: LeanConnection) -> None:
    check_quiet(conn)
    if conn.is_stale:
        await conn.close()
        raise psycopg.OperationalError(STALE)
