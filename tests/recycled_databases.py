"""Databases of tests, used again: a restore of what a test wrote costs a tenth of a new copy.

After a test its database gets a new name, so that nothing a test left behind can find it, and each table that
was written becomes as the template has it. A test that changed more than rows (a table of its own, a
function, a setting of the database) has its database dropped instead.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import psycopg
from psycopg.errors import ObjectInUse
from psycopg.sql import SQL, Identifier

from tests.servers import BorrowedServer, Server, make_once

USES_MAX: Final = 200
"""Each restore leaves dead rows in the catalog."""

Preparation = Callable[[str], None]
"""Adds to a database, named by its DSN, what a kind of test needs: tables, a clock."""

# A session's counts are complete once it is gone. The counts of a rolled-back change are there, too.
WRITTEN: Final = """
select relnamespace::regnamespace::text, relname from pg_class
where relkind = 'r' and not relisshared
  and pg_stat_get_tuples_inserted(oid) + pg_stat_get_tuples_updated(oid) + pg_stat_get_tuples_deleted(oid) > 0
"""
# What a database has beside its rows and its catalogs.
SURROUNDINGS: Final = """
select datdba, datacl::text, datconnlimit, datallowconn,
       (select array_agg(setconfig::text) from pg_db_role_setting where setdatabase = pg_database.oid),
       (select count(*) from pg_prepared_xacts where database = datname)
from pg_database where datname = current_database()
"""
OUR_TABLES: Final = """
select relnamespace::regnamespace::text, relname from pg_class
where relkind = 'r' and relnamespace::regnamespace::text not in ('pg_catalog', 'information_schema')
"""
REFERENCES: Final = """
select conrelid::regclass::text, confrelid::regclass::text from pg_constraint where contype = 'f'
"""
SEQUENCES: Final = "select schemaname, sequencename, start_value, last_value from pg_sequences"

Table = tuple[str, str]


@dataclass(frozen=True)
class Baseline:
    """A template's rows, sequences and surroundings."""

    rows: dict[Table, bytes]
    references: set[tuple[Table, Table]]
    sequences: list[tuple[str, str, int, int | None]]
    surroundings: Any


@dataclass
class Stock:
    """Databases of one template that wait for their next test."""

    template: str
    baseline: Baseline
    ready: list[str] = field(default_factory=list)
    uses: dict[str, int] = field(default_factory=dict)


class RecycledDatabases:
    """Databases for the tests of one process: migrated, and prepared for a kind of test."""

    def __init__(self, server: Server, template: str) -> None:
        self._server = server
        self._template = template
        self._stocks: dict[tuple[Preparation, ...], Stock] = {}

    @contextmanager
    def lent(self, prepared: tuple[Preparation, ...] = ()) -> Iterator[str]:
        """The name of a database that no other test uses, equal to a new one."""
        if prepared not in self._stocks:
            self._stocks[prepared] = self._new_stock(prepared)
        stock = self._stocks[prepared]
        name = self._take(stock)
        yield name
        self._give_back(name, stock)

    def close(self) -> None:
        for stock in self._stocks.values():
            for name in stock.ready:
                self._server.drop_database(name)
            # Those made of a template that was lent to us are kept: other processes may use them.
            borrowed = (
                isinstance(self._server, BorrowedServer) and "FAULTLINE_TEST_TEMPLATE" not in os.environ
            )
            if borrowed and stock.template != self._template:
                self._server.drop_database(stock.template)

    def _new_stock(self, prepared: tuple[Preparation, ...]) -> Stock:
        template = self._template
        for prepare in prepared:
            which = crc32(f"{prepare.__module__}.{prepare.__qualname__}".encode())
            source, template = template, f"{template}_{which:08x}"
            make_once(self._server, template, source, prepare)
        name = _new_name()
        self._server.create_database(name, template)
        with closing(self._connect(name)) as conn:
            stock = Stock(template, _baseline(conn), [name])
        stock.uses[name] = 0
        return stock

    def _take(self, stock: Stock) -> str:
        if stock.ready:
            return stock.ready.pop()
        name = _new_name()
        self._server.create_database(name, stock.template)
        stock.uses[name] = 0
        return name

    def _give_back(self, name: str, stock: Stock) -> None:
        """Restore a database, or drop it where a restore would not be enough."""
        uses = stock.uses.pop(name) + 1
        if uses >= USES_MAX or not self._server.end_sessions(name):
            self._server.drop_database(name)
            return
        again = _new_name()
        try:
            self._server.rename_database(name, again)
        except ObjectInUse:  # a pool that the test has left connects again
            self._server.drop_database(name)
            return
        with closing(self._connect(again)) as conn:
            restored = _restore(conn, stock.baseline)
        if restored:
            stock.ready.append(again)
            stock.uses[again] = uses
        else:
            self._server.drop_database(again)

    def _connect(self, name: str) -> psycopg.Connection[Any]:
        return psycopg.connect(self._server.dsn(name), autocommit=True)


def _new_name() -> str:
    return f"test_{secrets.token_hex(6)}"


def _baseline(conn: psycopg.Connection[Any]) -> Baseline:
    tables = conn.execute(OUR_TABLES).fetchall()
    references = conn.execute(REFERENCES).fetchall()
    return Baseline(
        {(schema, name): _rows_of(conn, schema, name) for schema, name in tables},
        {(_split(child), _split(parent)) for child, parent in references},
        conn.execute(SEQUENCES).fetchall(),
        conn.execute(SURROUNDINGS).fetchone(),
    )


def _split(name: str) -> Table:
    schema, _, table = name.partition(".")
    return schema, table


def _rows_of(conn: psycopg.Connection[Any], schema: str, name: str) -> bytes:
    with conn.cursor().copy(SQL("copy {} to stdout").format(Identifier(schema, name))) as copy:
        return b"".join(bytes(part) for part in copy)


def _restore(conn: psycopg.Connection[Any], baseline: Baseline) -> bool:
    """Make the written tables as they were; False where more than their rows changed."""
    written: set[Table] = set(conn.execute(WRITTEN).fetchall())
    if not written <= set(baseline.rows) or conn.execute(SURROUNDINGS).fetchone() != baseline.surroundings:
        return False
    # A table can be truncated only together with those that refer to it.
    while more := {child for child, parent in baseline.references if parent in written} - written:
        written |= more
    with conn.transaction():
        conn.execute("set local session_replication_role = replica")
        if written:
            names = SQL(", ").join(Identifier(*table) for table in sorted(written))
            conn.execute(SQL("truncate only {}").format(names))
        for table in written:
            _fill(conn, table, baseline.rows[table])
        for schema, name, start, last in baseline.sequences:
            conn.execute(
                "select setval(format('%%I.%%I', %s::text, %s::text)::regclass, %s, %s)",
                [schema, name, start if last is None else last, last is not None],
            )
        conn.execute("select pg_stat_force_next_flush()")
    conn.execute("select pg_stat_reset()")
    return True


def _fill(conn: psycopg.Connection[Any], table: Table, rows: bytes) -> None:
    if rows:
        with conn.cursor().copy(SQL("copy {} from stdin").format(Identifier(*table))) as copy:
            copy.write(rows)
