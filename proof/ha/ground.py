"""What a scenario stands on: the ways to a database, and how it is asked beside the load."""

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from proof.ha.addresses import (
    ADMIN,
    DATABASE,
    HAPROXY_PORT,
    NODES,
    OWNER,
    PGBOUNCER_PORT,
    by_port,
    one,
    several,
)
from proof.ha.cluster import Cluster
from proof.ha.processes import wait_for
from proof.ha.programs import ROOT, SOURCES

BIN: Final = Path(sys.executable).parent
COMMAND_SECONDS_MAX: Final = 120.0
EFFECTS: Final = """
create table if not exists effects (
  n bigint, job_id bigint, token bigint, who text, at timestamptz default clock_timestamp())
"""


@dataclass(frozen=True)
class Way:
    """A way to the database: its DSN, and what stands before it."""

    dsn: str
    pooler: str = "none"
    pinned: bool = False
    """It knows one server only, so it has no way to a newer primary."""


class HaDatabase(ABC):
    """A database under load, and the servers it may be on."""

    workers: Mapping[str, Way]
    producers: Mapping[str, tuple[Way, str]]
    watched: Mapping[str, str]
    main: Way

    @abstractmethod
    def ready(self, sync: bool | str) -> None:
        """Bring it to the state in which each run begins."""

    @abstractmethod
    def recovered(self) -> str:
        """Which server leads once everything is back, or what is missing."""

    @abstractmethod
    def close(self) -> None:
        """End what it started."""

    def admin(self, database: str = DATABASE) -> psycopg.Connection[Any]:
        hosts = [dsn.split("@")[1].split("/")[0] for dsn in self.watched.values()]
        return psycopg.connect(several(hosts, ADMIN, database), autocommit=True, connect_timeout=3)

    def prepare(self) -> None:
        """A role that is no superuser, a database of its own, the schema, the table of effects."""
        with self.admin("postgres") as conn:
            if not conn.execute("select 1 from pg_roles where rolname = %s", [OWNER]).fetchone():
                conn.execute(f"create role {OWNER} login".encode())
            if not conn.execute("select 1 from pg_database where datname = %s", [DATABASE]).fetchone():
                conn.execute(f"create database {DATABASE} owner {OWNER}".encode())
        code, said = self.faultline("migrate")
        if code:
            raise RuntimeError(f"faultline migrate: {said}")
        with psycopg.connect(self.main.dsn, autocommit=True) as conn:
            conn.execute(EFFECTS.encode())

    def faultline(self, *words: str) -> tuple[int, str]:
        """The exit code of a command, and its output."""
        env = {**os.environ, "FAULTLINE_DSN": self.main.dsn, "NO_COLOR": "1", "COLUMNS": "200"}
        env |= {"PYTHONPATH": SOURCES, "HA_NOTES": os.devnull}
        done = subprocess.run(
            [BIN / "faultline", *words], env=env, capture_output=True, text=True, cwd=ROOT,
            timeout=COMMAND_SECONDS_MAX, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout if not done.returncode else done.stdout + done.stderr


class OnCluster(HaDatabase):
    """The Patroni cluster: several hosts in the DSN, HAProxy, PgBouncer, and one worker that knows a only."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.main = Way(several([*NODES.values()]))
        haproxy = Way(by_port(HAPROXY_PORT))
        self.workers = {
            "multi": self.main, "haproxy": haproxy, "pgbouncer": Way(by_port(PGBOUNCER_PORT), "transaction"),
            "only-a": Way(one(NODES["a"]), pinned=True),
        }  # fmt: skip
        self.producers = {
            "p-multi": (self.main, "plain"), "p-keyed": (self.main, "keyed"), "p-haproxy": (haproxy, "keyed")
        }  # fmt: skip
        self.watched = {node: one(address, ADMIN, "postgres") for node, address in NODES.items()}

    def ready(self, sync: bool | str) -> None:
        """Node a leads, which the pinned worker knows, and replication is as the scenario wants it."""
        leader = wait_for(self.cluster.healthy, 180, "a healthy cluster")
        if leader != "a":
            self.set_sync(False)  # under synchronous replication only the synchronous standby may follow
            wait_for(lambda: self._switched(), 150, "node a leads")
        self.set_sync(sync)

    def _switched(self) -> bool:
        leader = self.cluster.healthy()
        if leader and leader != "a":
            self.cluster.switch_over(leader, "a")
        return leader == "a"

    def set_sync(self, sync: bool | str) -> None:
        self.cluster.configure(synchronous_mode=sync)
        wait_for(lambda: bool(self.synchronous()) == bool(sync), 60, f"synchronous replication is {sync}")

    def synchronous(self) -> list[str]:
        """The nodes that a commit waits for."""
        question = b"select application_name from pg_stat_replication where sync_state in ('sync', 'quorum')"
        with self.admin("postgres") as conn:
            return [name for (name,) in conn.execute(question)]

    def recovered(self) -> str:
        return self.cluster.recovered()

    def close(self) -> None:
        """Does nothing: the next scenario uses the same cluster."""
