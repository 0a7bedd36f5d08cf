"""Restores under load: from a base backup to a moment, and of copies of the data folder."""

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from proof.ha.addresses import ADMIN, ALONE, one
from proof.ha.faults import KEEPS, LOSES, FaultStep
from proof.ha.ground import HaDatabase, Way
from proof.ha.load import Load
from proof.ha.processes import Processes, signal_all, wait_for
from proof.ha.programs import Programs
from proof.ha.server import FAST, IMMEDIATE, HaServer

LIFE_SECONDS: Final = 8.0
"""How long life goes on after the copy was made: all of that is lost."""

ARCHIVED_SECONDS_MAX: Final = 30.0


class Alone(HaDatabase):
    """Servers without Patroni, and workers that know their addresses."""

    def __init__(self, home: Path, programs: Programs, addresses: list[str], main: Way) -> None:
        home.mkdir()
        programs.account.own(home)
        self.home = home
        self.programs = programs
        self.processes = Processes(home, programs)
        self.main = main
        self.workers = {"multi": main}
        self.producers = {"p-multi": (main, "plain"), "p-keyed": (main, "keyed")}
        names = {address: name for name, address in ALONE.items()}
        self.watched = {names[address]: one(address, ADMIN, "postgres") for address in addresses}

    def recovered(self) -> str:
        with self.admin("postgres") as conn:
            return str(conn.info.host)

    def close(self) -> None:
        """End the servers; their logs stay, their data does not."""
        self.processes.kill_all()
        for folder in self.home.iterdir():
            if folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)


class OnRestore(Alone):
    """One server that archives its WAL."""

    def __init__(self, home: Path, programs: Programs, major: int) -> None:
        super().__init__(home, programs, [ALONE["old"]], Way(one(ALONE["old"])))
        self.archive = home / "archive"
        self.archive.mkdir()
        programs.account.own(self.archive)
        self.server = HaServer(self.processes, "old", programs, major, ALONE["old"])

    def ready(self, sync: bool | str) -> None:
        command = f"test ! -f {self.archive}/%f && cp %p {self.archive}/%f"
        self.server.initialise({"archive_mode": "on", "archive_command": command, "wal_level": "replica"})
        self.server.start()
        self.prepare()


def to_a_moment(ground: OnRestore, load: Load) -> Iterator[FaultStep]:
    """A base backup, life, a moment, more life, a disaster; then the moment is restored from the archive."""
    server, backup = ground.server, ground.home / "backup"
    server.run("pg_basebackup", "-D", str(backup), "-c", "fast", "-X", "stream", "-d", server.dsn("postgres"))
    yield FaultStep("a base backup is made")
    time.sleep(LIFE_SECONDS / 2)
    yield FaultStep("the moment to restore", LOSES)
    ((moment,),) = server.ask("select clock_timestamp()::text")
    time.sleep(LIFE_SECONDS)
    ((last,),) = server.ask("select pg_walfile_name(pg_switch_wal())")
    wait_for((ground.archive / str(last)).exists, ARCHIVED_SECONDS_MAX, "the WAL is archived")
    server.stop(IMMEDIATE)
    yield FaultStep("the server is lost")
    _ask_for_recovery(backup, ground.archive, str(moment))
    server.replace_by(backup)
    server.start()
    yield FaultStep("the moment is restored", KEEPS)


def _ask_for_recovery(data: Path, archive: Path, moment: str) -> None:
    (data / "recovery.signal").touch()
    wanted = {
        "restore_command": f"cp {archive}/%f %p", "recovery_target_time": moment,
        "recovery_target_action": "promote",
    }  # fmt: skip
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in wanted.items())


def stopped_copy(ground: OnRestore, load: Load) -> Iterator[FaultStep]:
    """The storage snapshot of a server that was stopped; then life goes on, then the snapshot is restored."""
    server, copy = ground.server, ground.home / "copy"
    server.stop(FAST)
    server.copy_to(copy)
    yield FaultStep("stopped and copied", LOSES)
    server.start()
    yield FaultStep("started again, life goes on")
    yield from _restored(server, copy)


def live_copy(ground: OnRestore, load: Load) -> Iterator[FaultStep]:
    """The storage snapshot of a running server: every process stands still while its files are copied."""
    server, copy = ground.server, ground.home / "copy"
    family = server.family()
    signal_all(family, signal.SIGSTOP)
    server.copy_to(copy)
    yield FaultStep("a crash-consistent copy is made", LOSES)
    signal_all(reversed(family), signal.SIGCONT)
    yield from _restored(server, copy)


def _restored(server: HaServer, copy: Path) -> Iterator[FaultStep]:
    time.sleep(LIFE_SECONDS)
    server.stop(IMMEDIATE)
    yield FaultStep("the server is lost")
    server.replace_by(copy)
    server.start()
    yield FaultStep("the copy is restored", KEEPS)
