"""The servers' state of replication: facts for doctor to judge.

The query runs with the rights of doctor's login. PostgreSQL shows the state of standbys to pg_monitor
alone, and the owner of our functions is rarely a member.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.errors import FaultlineError
from faultline.store.driver.connect import connect, conninfo
from faultline.store.driver.sqlstate import connect_reason
from faultline.store.servers.dsn_hosts import each_host

CONNECT_SECONDS: Final = 3
"""The bound on the wait for an unreachable host; all are asked at once."""

HOSTS_MAX: Final = 16
SLOTS_MAX: Final = 1_000


class StandbyFacts(NamedTuple):
    name: str
    state: str | None
    """`streaming` where all is well; None where this role may not see it."""
    sync_state: str | None
    behind_bytes: int | None
    lag_seconds: float | None


class SlotFacts(NamedTuple):
    name: str
    active: bool
    wal_status: str | None
    held_bytes: int | None


@dataclass(frozen=True, slots=True)
class ReplicationFacts:
    """One server's side of it."""

    in_recovery: bool
    synchronous_standby_names: str
    sees_standbys: bool
    standbys: Sequence[StandbyFacts]
    held: Sequence[SlotFacts]


class HostFacts(NamedTuple):
    """One of the servers that a DSN names."""

    name: str
    writable: bool = False
    in_recovery: bool = False
    identity: str = ""
    trouble: str = ""
    """The reason why it could not be asked."""


def replication_of(conn: psycopg.Connection[Any]) -> ReplicationFacts | None:
    """Its standbys and slots; None where the server does not tell them, as some managed ones."""
    try:
        ((in_recovery, names, sees),) = _ask(conn, "replication")
        return ReplicationFacts(
            in_recovery,
            names,
            sees,
            [StandbyFacts._make(row) for row in _ask(conn, "standbys")],
            [SlotFacts._make(row) for row in _ask(conn, "slots")[:SLOTS_MAX]],
        )
    except psycopg.Error:
        return None


def parameters(dsn: str) -> dict[str, str]:
    """The DSN's parameters, with those that libpq takes from the environment."""
    known = psycopg.pq.Conninfo.get_defaults()
    around = {option.keyword.decode(): option.val.decode() for option in known if option.val}
    return {**around, **{name: str(value) for name, value in conninfo_to_dict(conninfo(dsn)).items()}}


def hosts_of(dsn: str) -> list[str]:
    """Each server that the DSN names, as a DSN of its own that takes it in any state."""
    known = conninfo(dsn)
    each = dict.fromkeys(tuple(own.items()) for own in each_host(known))
    return [
        make_conninfo(known, **dict(own), target_session_attrs="any", connect_timeout=CONNECT_SECONDS)
        for own in each
    ][:HOSTS_MAX]


def ask_hosts(dsns: Sequence[str]) -> list[HostFacts]:
    """Ask each server at once whether it takes writes."""
    with ThreadPoolExecutor(len(dsns)) as all_at_once:
        return list(all_at_once.map(_ask_host, dsns))


def _ask_host(dsn: str) -> HostFacts:
    known = conninfo_to_dict(dsn)
    name = f"{known.get('host') or known.get('hostaddr')}:{known.get('port') or 5432}"
    try:
        with connect(dsn, prepare_threshold=None) as conn:
            ((writable, in_recovery, identity),) = _ask(conn, "server")
    except (FaultlineError, psycopg.Error) as error:
        return HostFacts(name, trouble=connect_reason(error.__cause__ or error))
    return HostFacts(name, writable, in_recovery, identity)


def _ask(conn: psycopg.Connection[Any], name: str) -> list[tuple[Any, ...]]:
    sql = files("faultline.doctor").joinpath("sql", f"{name}.sql").read_bytes()
    return conn.execute(sql).fetchall()
