"""Make a usable connection, or raise an error that says why not in one line."""

import re
import select
from collections.abc import Mapping
from typing import Any, TypeVar, overload

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from faultline import errors
from faultline.config import check_dsn, redact, trimmed
from faultline.store.driver import handshake
from faultline.store.driver.async_connection import AsyncPqConnection, SyncPqConnection
from faultline.store.driver.sqlstate import connect_reason, named, named_errors
from faultline.store.servers.hosts import CONNECT_SECONDS_MAX, StalePrimary
from faultline.store.servers.read_only import LastLeft

C = TypeVar("C", bound=AsyncConnection[Any])

UNHEARD_MILLISECONDS_MAX = 15_000
"""How long a sent call may stay unacknowledged; no keepalives are sent while one is under way."""
_QUOTED = re.compile(r'".*"|"[^"]*$', re.DOTALL)
_UNKNOWN = re.compile(r'(?:query parameter:|connection option) "([^"]*)"')
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,10}\s*", re.ASCII)
_NUMBERS = (
    "port", "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count",
    "tcp_user_timeout",
)  # fmt: skip
STALE = "the server was given up or left, or one of a later epoch seen, since this connection was made"
SCHEMA_QUESTION = "select * from faultline.schema_version()"
PID_QUESTION = "select pg_backend_pid()"


def conninfo(dsn: str, name: str = "faultline") -> str:
    """The DSN with our defaults: bounded waits, keepalives that notice a dead peer, an application name."""
    habits: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS_MAX,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": UNHEARD_MILLISECONDS_MAX,
        "application_name": name,
        "client_encoding": "UTF8",  # without it, a database in SQL_ASCII returns bytes for text
    }
    check_dsn(dsn)
    dsn = trimmed(dsn)
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
        known = conninfo_to_dict(dsn)
        reason = _no_number(known)
        if reason is None:
            return make_conninfo(
                dsn, **{habit: value for habit, value in habits.items() if habit not in known}
            )
    except psycopg.ProgrammingError as fault:
        reason = _unread(str(fault).strip(), dsn)
    # Outside the block above: libpq's error may quote half a password, and must not be this error's context.
    raise errors.ConfigError(
        f"the DSN {redact(dsn)!r} cannot be read: {reason}; check FAULTLINE_DSN, dsn=... or --dsn"
    )


def _no_number(known: Mapping[str, Any]) -> str | None:
    """The parameter that has text in place of a number; libpq checks some of them only later."""
    for name in _NUMBERS:
        values = str(known.get(name) or "").split(",") if name == "port" else [str(known.get(name) or "")]
        for value in values:
            if value and not _WHOLE.fullmatch(value):
                return f"{name} is a whole number; got {value[:40]!a}"
    return None


def _unread(said: str, dsn: str) -> str:
    """Why libpq cannot read the DSN. Its quotes may be half a password, so only a parameter is named."""
    found = _UNKNOWN.search(said)
    if found is None:
        return _QUOTED.sub("...", said)
    from faultline.text.suggest import close_to  # rarely needed, and a pacemaker does not load it

    near = close_to(found[1], (option.keyword.decode() for option in Conninfo.get_defaults()), most=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    _, is_url, rest = dsn.partition("://")
    around = rest.partition("?")[2] if is_url else dsn
    if "@" in around or "pass" in around:
        return f"a parameter is not known{hint}"
    return f"{found[1][:40]} is no parameter{hint}"


def _password_is_not_escaped(dsn: str) -> bool:
    """Whether libpq would read, and quote, a part of the password as the host or the port."""
    _, found, rest = dsn.partition("://")
    if not found:
        return False
    authority, _, path = rest.partition("?")[0].partition("/")
    _, colon, port = authority.rpartition(":")
    begins_a_port = "@" not in authority and "@" in path and colon == ":" and not port.isdigit()
    return begins_a_port or authority.count("@") > 1


def connect(dsn: str, **options: Any) -> SyncPqConnection:
    try:
        return SyncPqConnection.connect(conninfo(dsn), autocommit=True, **options)
    except psycopg.Error as fault:
        raise cannot_connect(dsn, fault) from fault


@overload
async def aconnect(dsn: str, **options: Any) -> AsyncConnection[Any]: ...
@overload
async def aconnect(dsn: str, kind: type[C], **options: Any) -> C: ...
async def aconnect(
    dsn: str, kind: type[AsyncConnection[Any]] = AsyncPqConnection, **options: Any
) -> AsyncConnection[Any]:
    try:
        return await kind.connect(conninfo(dsn), autocommit=True, **options)
    except psycopg.Error as fault:
        raise cannot_connect(dsn, fault) from fault


def cannot_connect(dsn: str, fault: psycopg.Error) -> Exception:
    if "permission denied" in str(fault):
        return named(fault)
    if isinstance(fault, StalePrimary):
        return errors.OldPrimary(f"{fault}; nothing was sent; it is looked for again")
    return errors.CannotConnect(
        f"cannot connect to {redact(dsn)}: {connect_reason(fault)}; check FAULTLINE_DSN, dsn=... or "
        "--dsn, and that the server runs"
    )


def check_server(conn: Connection[Any]) -> bool:
    """Check that this program can use the server and its schema.

    Returns whether a pooler is in between: a pooler invents the process id that it gives its clients.
    """
    with named_errors():
        handshake.judge(*(conn.execute(handshake.QUESTION).fetchone() or ()))
        handshake.judge_schema(conn.execute(SCHEMA_QUESTION).fetchone())
        return conn.execute(PID_QUESTION).fetchone() != (conn.info.backend_pid,)


async def acheck_server(conn: AsyncConnection[Any]) -> bool:
    with named_errors():
        handshake.judge(*(await (await conn.execute(handshake.QUESTION)).fetchone() or ()))
        handshake.judge_schema(await (await conn.execute(SCHEMA_QUESTION)).fetchone())
        return await (await conn.execute(PID_QUESTION)).fetchone() != (conn.info.backend_pid,)


def check_quiet(conn: Connection[Any] | AsyncConnection[Any]) -> None:
    """Refuse a pooled connection on which the server sent bytes while it was idle: it has closed it.

    It only polls the socket: a round trip would cost each enqueue a tenth of a millisecond.
    """
    # poll, because select refuses descriptors past 1,023. It reads until nothing is left: the server's last
    # message comes before the end of the stream, and only the end raises.
    socket = select.poll()
    socket.register(conn.fileno(), select.POLLIN)
    while socket.poll(0):
        conn.pgconn.consume_input()


async def acheck_quiet(conn: AsyncConnection[Any]) -> None:
    check_quiet(conn)


def check_lent(left: LastLeft, conn: SyncPqConnection) -> None:
    """Refuse a pooled connection that the server has closed, or whose server was left since, or is old."""
    check_quiet(conn)
    if conn.is_stale or left.is_after(conn):
        conn.close()  # or the pool would lend it again
        raise psycopg.OperationalError(STALE)


async def acheck_lent(left: LastLeft, conn: AsyncPqConnection) -> None:
    check_quiet(conn)
    if conn.is_stale or left.is_after(conn):
        await conn.close()
        raise psycopg.OperationalError(STALE)
