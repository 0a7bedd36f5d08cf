"""Major upgrades under load: in place by pg_upgrade, and by a switch-over of logical replication."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from proof.ha.addresses import ADMIN, ALONE, DATABASE, OWNER, one, several
from proof.ha.faults import FaultStep
from proof.ha.ground import Way
from proof.ha.load import Load
from proof.ha.processes import wait_for
from proof.ha.programs import NEWEST, OLDEST, Programs
from proof.ha.restores import Alone
from proof.ha.server import FAST, HaServer

CAUGHT_UP_SECONDS_MAX: Final = 60.0
WITHOUT_IDENTITY: Final = """
select format('alter table %I.%I replica identity full', space.nspname, item.relname)
from pg_class as item join pg_namespace as space on space.oid = item.relnamespace
where item.relkind in ('r', 'p') and space.nspname in ('faultline', 'public') and item.relpersistence = 'p'
  and not exists (select from pg_index as key where key.indrelid = item.oid and key.indisprimary)
"""
SEQUENCES: Final = """
select format('%I.%I', schemaname, sequencename), last_value from pg_sequences where last_value is not null
"""


class OnPgUpgrade(Alone):
    """An old server with the load on it; a new one, empty, will take its data and its address."""

    def __init__(self, home: Path, programs: Programs, major: int) -> None:
        super().__init__(home, programs, [ALONE["old"]], Way(one(ALONE["old"])))
        self.old = HaServer(self.processes, "old", programs, OLDEST, ALONE["old"])
        self.new = HaServer(self.processes, "new", programs, NEWEST, ALONE["old"])

    def ready(self, sync: bool | str) -> None:
        for server in (self.old, self.new):
            server.initialise({})
        self.old.start()
        self.prepare()


def pg_upgrade(ground: OnPgUpgrade, load: Load) -> Iterator[FaultStep]:
    old, new = ground.old, ground.new
    yield FaultStep(f"PostgreSQL {OLDEST} is stopped")
    old.stop(FAST)
    new.run(
        "pg_upgrade", "-U", ADMIN, "-b", str(old.binaries), "-B", str(new.binaries),
        "-d", str(old.data), "-D", str(new.data), cwd=ground.home,
    )  # fmt: skip
    yield FaultStep("pg_upgrade is done")
    new.start()
    yield FaultStep(f"PostgreSQL {NEWEST} runs")


class OnLogical(Alone):
    """An old server, and a new one that subscribes to everything; workers know both addresses."""

    def __init__(self, home: Path, programs: Programs, major: int) -> None:
        both = [*ALONE.values()]
        super().__init__(home, programs, both, Way(several(both)))
        self.old = HaServer(self.processes, "old", programs, OLDEST, ALONE["old"])
        self.new = HaServer(self.processes, "new", programs, NEWEST, ALONE["new"])

    def ready(self, sync: bool | str) -> None:
        for server in (self.old, self.new):
            server.initialise({"wal_level": "logical"})
            server.start()
        # The load may not enter the new server before the switch: it would write beside what is replicated.
        self.new.ask(f"create role {OWNER} nologin", database="postgres")
        self.prepare()
        self._subscribe()

    def _subscribe(self) -> None:
        """Copy the schema, publish every table, and wait until the first copy is complete."""
        dump = self.home / "schema.sql"
        self.new.run("pg_dump", "--create", "--schema-only", "-d", self.old.dsn(), "-f", str(dump))
        self.new.run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.new.dsn("postgres"), "-f", str(dump))
        for (statement,) in self.old.ask(WITHOUT_IDENTITY):
            self.old.ask(str(statement))
        self.old.ask("create publication everything for all tables with (publish_via_partition_root = true)")
        source = f"host={self.old.address} user={ADMIN} dbname={DATABASE}"
        self.new.ask(f"create subscription everything connection '{source}' publication everything")
        wait_for(self._is_copied, CAUGHT_UP_SECONDS_MAX, "the first copy is complete")

    def _is_copied(self) -> bool:
        states = self.new.ask("select srsubstate::text from pg_subscription_rel")
        return bool(states) and {state for (state,) in states} == {"r"}

    def caught_up(self) -> bool:
        return self.old.ask(
            "select bool_and(confirmed_flush_lsn >= pg_current_wal_lsn()) from pg_replication_slots"
        ) == [(True,)]


def switch(ground: OnLogical, load: Load) -> Iterator[FaultStep]:
    yield from _switch(ground, load, sequences=True)


def switch_without_sequences(ground: OnLogical, load: Load) -> Iterator[FaultStep]:
    yield from _switch(ground, load, sequences=False)


def _switch(ground: OnLogical, load: Load, *, sequences: bool) -> Iterator[FaultStep]:
    old, new = ground.old, ground.new
    old.ask("alter system set default_transaction_read_only = on")
    old.ask("select pg_reload_conf()")
    time.sleep(0.2)  # a reload reaches the sessions one by one
    old.ask(f"select pg_terminate_backend(pid) from pg_stat_activity where usename = '{OWNER}'")
    yield FaultStep("the old server is read-only, its sessions are closed")
    wait_for(ground.caught_up, CAUGHT_UP_SECONDS_MAX, "the new server has everything")
    if sequences:
        for name, value in old.ask(SEQUENCES):
            new.ask("select setval(%s::regclass, %s)", name, value)
    yield FaultStep("everything is there" + (", the sequences are set" if sequences else ""))
    new.ask("drop subscription everything")
    new.ask(f"alter role {OWNER} login", database="postgres")
    yield FaultStep("the new server takes writes")
    time.sleep(3)
    yield FaultStep(_come_late(ground, load))


def _come_late(ground: OnLogical, load: Load) -> str:
    """A queue and a worker that were not there before the switch: both take new numbers."""
    words = ("enqueue", "plain", '{"n": 0, "ms": 0}', "--queue", "late")
    work = ("worker", "proof.ha.shop:app", "--queues", "late", "--until-empty", "--log", "json")
    for what, command in (("queue", words), ("worker", work)):
        code, said = ground.faultline(*command)
        if code:
            load.exits[f"a new {what}"] = f"exit code {code}: {said.strip().splitlines()[-1][:200]}"
            return f"a new {what} is refused"
    return "a new queue and a new worker are taken"
