"""A PostgreSQL of its own, without Patroni: to be upgraded, copied and restored."""

import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psycopg

from proof.ha.addresses import ADMIN, DATABASE, one
from proof.ha.processes import Processes, postmaster_of, signal_all, wait_for
from proof.ha.programs import Programs
from proof.ha.settings import HBA

INITDB: Final = (
    "-U",
    ADMIN,
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--data-checksums",
    "--no-sync",
)
START_SECONDS_MAX: Final = 60.0
FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT


class HaServer:
    """One data folder, its programs and its address."""

    def __init__(self, processes: Processes, name: str, programs: Programs, major: int, address: str) -> None:
        self.name = name
        self.binaries = programs.postgres[major]
        self.address = address
        self.data = processes.folder / f"data-{name}"
        self._programs = programs
        self._processes = processes

    def initialise(self, settings: Mapping[str, object]) -> None:
        self.run("initdb", "-D", str(self.data), *INITDB)
        ours = {
            "listen_addresses": self.address, "unix_socket_directories": "", "max_connections": 150,
            "shared_buffers": "64MB", "log_line_prefix": "%m [%p] %a ", **settings,
        }  # fmt: skip
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in ours.items())
        (self.data / "pg_hba.conf").write_text("\n".join(HBA) + "\n")

    def start(self) -> None:
        self._processes.serve(f"postgres-{self.name}", [self.binaries / "postgres", "-D", self.data])
        wait_for(self.takes_writes, START_SECONDS_MAX, f"{self.name} takes writes")

    def takes_writes(self) -> bool:
        try:
            with psycopg.connect(self.dsn("postgres"), connect_timeout=2) as conn:
                return conn.execute("select pg_is_in_recovery()").fetchone() == (False,)
        except psycopg.Error:
            return False

    def stop(self, how: signal.Signals) -> None:
        """Fast, or immediate: as if the machine had lost its power."""
        signal_all(self.family()[:1], how)
        wait_for(
            lambda: not self._processes.pid(f"postgres-{self.name}"), START_SECONDS_MAX, f"{self.name} stops"
        )

    def family(self) -> list[int]:
        return postmaster_of(self.data)

    def copy_to(self, folder: Path) -> None:
        """The data folder as it is on the disk, file by file."""
        subprocess.run(["cp", "-a", "--reflink=auto", str(self.data), str(folder)], check=True)

    def replace_by(self, folder: Path) -> None:
        """Put another data folder in its place; the one that was there is gone."""
        shutil.rmtree(self.data)
        folder.rename(self.data)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def run(self, program: str, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [str(self.binaries / program), *words], cwd=cwd or self._processes.folder, capture_output=True,
            text=True, check=False, **self._programs.account.spawn,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program}: {(done.stderr + done.stdout)[-800:]}")
        return str(done.stdout)

    def dsn(self, database: str = DATABASE) -> str:
        return one(self.address, ADMIN, database)

    def ask(self, sql: str, *args: object, database: str = DATABASE) -> list[tuple[object, ...]]:
        with psycopg.connect(self.dsn(database), autocommit=True) as conn:
            done = conn.execute(sql.encode(), args or None)
            return done.fetchall() if done.description else []
