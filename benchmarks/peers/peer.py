"""One system under test, used through its adapter's command line alone."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Identifier

from benchmarks.peers import places

Conn = psycopg.Connection[DictRow]

EFFECTS: LiteralString = (
    "create table bench_effects(id bigserial, seq int, pgid int, at timestamptz default clock_timestamp())"
)


def admin(database: str = "postgres") -> Conn:
    return psycopg.connect(places.dsn(database), autocommit=True, row_factory=dict_row)


def query(conn: Conn, text: str) -> list[DictRow]:
    """Run SQL that an adapter gave."""
    return conn.execute(text).fetchall()


class Absent(Exception):
    """This system is not installed, or what it needs is not: it is named in the results with the reason."""


class Peer:
    """An adapter, and the databases it is measured in."""

    def __init__(self, path: Path, index: int) -> None:
        self.path, self.index = path, index
        self.key = path.stem.rstrip("_")
        self.argv = [str(places.PYTHON if path.suffix == ".py" else places.NODE), str(path)]
        try:
            self.meta: dict[str, Any] = self.call("meta", "bench_" + self.key)
            if self.meta["backend"] == "redis":
                self.redis("").ping()
        except Exception as error:
            raise Absent((str(error).strip().splitlines() or [repr(error)])[-1][:300]) from error
        self.name: str = self.meta["name"]

    def takes_part(self, phase: str) -> bool:
        """Whether it is measured in this phase; one that names none, in all but `one_row`."""
        named = self.meta.get("phases")
        return phase != "one_row" if named is None else phase in named

    def environment(self, database: str, run_dir: Path | None = None, **more: Any) -> dict[str, str]:
        told = {
            **os.environ,
            "BENCH_DSN": places.dsn(database),
            "BENCH_NODE_DIR": str(places.NODE_DIR),
            "BENCH_REDIS_URL": f"redis://127.0.0.1:{places.REDIS_PORT}/{self._redis_number(database)}",
            "PATH": f"{places.pg_bin()}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
        }
        if run_dir:
            told["BENCH_RUN_DIR"] = str(run_dir)
        return {**told, **{name: str(value) for name, value in more.items()}}

    def _redis_number(self, database: str) -> int:
        """A redis database for each system and kind of test, of the sixteen there are."""
        kind = 1 if database.endswith("_d") else 2 if database.endswith("_r") else 0
        return self.index % 5 * 3 + kind

    def redis(self, database: str) -> Any:
        import redis

        return redis.Redis(port=places.REDIS_PORT, db=self._redis_number(database))

    def call(self, verb: str, database: str, *args: Any, timeout: float = 300, **more: Any) -> dict[str, Any]:
        """Run one verb of the adapter and give back what it printed after the word BENCH."""
        done = subprocess.run(
            [*self.argv, verb, *map(str, args)], env=self.environment(database, **more),
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        answer = re.search(r"^BENCH (.*)$", done.stdout, re.MULTILINE)
        if done.returncode or not answer:
            said = f"{done.stdout[-500:]} {done.stderr[-1500:]}"
            raise RuntimeError(f"{self.path.name} {verb}: exit code {done.returncode} {said}")
        return cast(dict[str, Any], json.loads(answer[1]))

    def make_template(self) -> None:
        """Install the schema once; every phase starts from a copy of it."""
        template = self._template
        with admin() as conn:
            conn.execute(SQL("drop database if exists {} with (force)").format(Identifier(template)))
            conn.execute(SQL("create database {}").format(Identifier(template)))
        with admin(template) as conn:
            conn.execute(EFFECTS)
        self.call("setup", template)

    @property
    def _template(self) -> str:
        return f"bench_{self.key}_tpl"

    def fresh(self, suffix: str = "") -> str:
        """A new copy of the template, after a checkpoint; answers its name."""
        database = f"bench_{self.key}{suffix}"
        with admin() as conn:
            conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [self._template]
            )
            conn.execute(SQL("drop database if exists {} with (force)").format(Identifier(database)))
            names = Identifier(database), Identifier(self._template)
            conn.execute(SQL("create database {} template {}").format(*names))
            conn.execute("checkpoint")
        if self.meta["backend"] == "redis":
            self.redis(database).flushdb()
        return database

    def remaining(self, conn: Conn, database: str) -> int:
        """How many jobs are unfinished, by the library's own tables."""
        counted = self.meta["remaining"]
        if "sql" in counted:
            return int(next(iter(query(conn, counted["sql"])[0].values())))
        server = self.redis(database)
        return sum(server.execute_command(*command) for command in counted["redis"])

    def job_rows(self, database: str, what: str = "snapshot") -> Any:
        """The job as the library's tables show it; for redis the lengths of its queues."""
        if self.meta["backend"] == "redis":
            server = self.redis(database)
            commands = self.meta["remaining"]["redis"]
            return {" ".join(command): server.execute_command(*command) for command in commands}
        with admin(database) as conn:
            return json.loads(json.dumps(query(conn, self.meta[what]), default=str))
