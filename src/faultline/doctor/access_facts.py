"""The functions, tables and roles of a database: facts for doctor to judge."""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from faultline.store.driver.sqlstate import named_errors


class Function(NamedTuple):
    name: str
    owner: str
    definer: bool
    config: list[str]
    body: str
    callers: list[str]
    """The roles that may call it, besides its owner."""


class Relation(NamedTuple):
    kind: str
    name: str
    owner: str
    granted: list[str]
    """Role and privilege, as `app select`, of all roles but the owner."""


class Power(NamedTuple):
    role: str
    attributes: list[str]
    member_of: list[str]


class BackDoor(NamedTuple):
    login: str
    through: str
    what: str
    inherits: bool
    migrates: bool


@dataclass(frozen=True, slots=True)
class AccessFacts:
    """All facts, in one snapshot."""

    owner: str
    groups: dict[str, str]
    functions: list[Function]
    relations: list[Relation]
    powers: list[Power]
    back_doors: list[BackDoor]


def gather(conn: psycopg.Connection[Any]) -> AccessFacts:
    """Query the catalogs; every role may read them, only the list of groups is ours.

    In a transaction of its own it is one snapshot; in yours it sees your changes.
    """
    idle = conn.info.transaction_status is TransactionStatus.IDLE
    with named_errors(), conn.transaction():
        if idle:
            conn.execute("set transaction isolation level repeatable read, read only")
        relations = [Relation._make(row) for row in _ask(conn, "relations")]
        owner = next(relation.owner for relation in relations if relation.kind == "schema")
        groups: dict[str, str] = dict(_ask(conn, "duties"))
        return AccessFacts(
            owner=owner,
            groups=groups,
            functions=[Function._make(row) for row in _ask(conn, "functions")],
            relations=relations,
            powers=[Power._make(row) for row in _ask(conn, "powers", roles=[owner, *groups.values()])],
            back_doors=[
                BackDoor._make(row) for row in _ask(conn, "back_doors", migrator=groups.get("migrator", ""))
            ],
        )


def _ask(conn: psycopg.Connection[Any], name: str, **args: Any) -> list[tuple[Any, ...]]:
    sql = files("faultline.doctor").joinpath("sql", f"{name}.sql").read_bytes()
    return conn.execute(sql, args or None).fetchall()
