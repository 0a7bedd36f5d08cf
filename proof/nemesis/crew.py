"""The crew: real worker processes at their posts, started again whenever the storm has taken one."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from faultline.config import SUSPECTS_MAX
from faultline.lab.drills.processes.worker_processes import ProcessKeeper
from proof.nemesis.plan import LEASE_SECONDS
from proof.nemesis.proxy import Link

RUN: Final = "NEMESIS_RUN"
"""In the environment of every process of the run: it identifies a process that was left behind."""

LOOK_EVERY_SECONDS: Final = 0.05
AGAIN_SECONDS: Final = (0.2, 1.0)
WORKER: Final = (sys.executable, "-P", "-m", "faultline", "worker", "proof.nemesis.app:app")


@dataclass(frozen=True)
class Orders:
    """How one post is manned: the worker's flags, and what its environment adds."""

    flags: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    connections_max: int = 0
    """Its connection budget as documented: what it may hold open at most."""


SERVES_ALL: Final = "moves,plains,children,ambushes,plain-ambushes"
CHILDREN: Final = 2


def _orders(concurrency: int, processes: int = 1, queues: str = SERVES_ALL, **environment: str) -> Orders:
    flags = [
        "--queues",
        queues,
        "--concurrency",
        str(concurrency),
        "--children",
        str(CHILDREN),
        "--grace",
        "1s",
    ]
    flags += ["--lease", f"{LEASE_SECONDS:g}s", "--log", "json"]
    flags += ["--processes", str(processes)] if processes > 1 else []
    # Six connections, and for job.complete one an async handler, one a thread and one a child; a child for
    # jobs that crashed before runs async handlers and threads, so it may keep two. With several processes
    # four each, and two for all of them.
    lent = 2 * concurrency + CHILDREN + 2 * min(SUSPECTS_MAX, concurrency)
    most = 6 + lent if processes == 1 else 2 + processes * (4 + lent)
    return Orders(tuple(flags), tuple(environment.items()), most)


CREW: Final = {
    "anna": _orders(6),
    "boris": _orders(4, processes=2),
    "clara": _orders(6, FAULTLINE_POOLER="transaction"),
    "dmitri": _orders(5),
}
TRAPPED: Final = {
    queue: _orders(1, queues=queue, FAULTLINE_FAILPOINTS=f"{point}=freeze")
    # A success is sent by the handler's own transaction, or in the settler's batch.
    for queue, point in {"ambushes": "commit.sending", "plain-ambushes": "settle.sending"}.items()
}


@dataclass(eq=False)
class Post:
    """One worker's post: its line to the server, its log, and the process there now."""

    name: str
    orders: Orders
    link: Link
    log: Path
    keeper: ProcessKeeper
    environment: dict[str, str]
    process: "subprocess.Popen[bytes] | None" = None
    wanted: bool = False
    struck: bool = False
    """Whether the crew ended this one itself: only an unasked end is a finding."""
    starts: int = 0
    unasked: dict[str, int] = field(default_factory=dict)
    """The workers that ended by themselves, and with which code."""
    command: tuple[str, ...] = WORKER

    def start(self) -> None:
        self.wanted, self.struck, self.starts = True, False, self.starts + 1
        flags = ("--name", f"{self.name}-{self.starts}", *self.orders.flags) if self.command == WORKER else ()
        # A trap springs once for a worker and its children: a worker that wakes must not meet it again.
        once = self.log.with_name(f"{self.name}-{self.starts}.once")
        once.mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0,
                env={
                    **os.environ, **self.environment, **dict(self.orders.environment),
                    "FAULTLINE_DSN": self.link.dsn, "PYTHONUNBUFFERED": "1",
                    "NEMESIS_GENERATION": str(self.starts), "FAULTLINE_FAILPOINTS_ONCE": str(once),
                },
            )  # fmt: skip
        self.keeper.say("hold", self.process.pid)

    @property
    def pid(self) -> int | None:
        """The process at this post, unless gone."""
        return self.process.pid if self.process is not None and self.process.poll() is None else None

    def send(self, number: signal.Signals, *, all_of_it: bool = False) -> int | None:
        """Send a signal to the worker alone, or to its whole family; its id, or None without one."""
        pid = self.pid
        if pid is None:
            return None
        for member in [pid, *family(pid)] if all_of_it else [pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, number)
        return pid

    def strike(self, number: signal.Signals, *, all_of_it: bool = False) -> int | None:
        """End it; another comes in a moment."""
        self.struck = True
        return self.send(number, all_of_it=all_of_it)

    async def keep_manned(self, pause: float) -> None:
        """Start another whenever one has ended, for as long as one is wanted."""
        while self.wanted:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            if not self.wanted or self.process is None or self.process.poll() is None:
                continue
            self.bury()
            await asyncio.sleep(pause)
            if self.wanted:
                self.start()

    def bury(self) -> None:
        """Note how it ended, and end what it may have left in its group."""
        assert self.process is not None
        if not self.struck:
            self.unasked[f"{self.name}-{self.starts}"] = self.process.returncode
        self.keeper.say("drop", self.process.pid)
        self.process = None

    async def leave(self, within: float) -> int | None:
        """SIGTERM, and its exit code if it went in time; killed if it did not."""
        self.wanted = False
        process = self.process
        if process is None:
            return 0  # no process was here just then
        self.struck = True
        self.send(signal.SIGCONT, all_of_it=True)
        self.send(signal.SIGTERM)
        until = time.monotonic() + within
        while process.poll() is None and time.monotonic() < until:  # noqa: ASYNC110 - no event comes
            await asyncio.sleep(LOOK_EVERY_SECONDS)
        code = process.returncode
        if code is None:
            self.send(signal.SIGKILL, all_of_it=True)
            await asyncio.to_thread(process.wait)
        return code


def state_of(pid: int) -> str:
    """A process's state as the kernel says it: T is stopped, X is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def family(pid: int) -> dict[int, str]:
    """Every process that descends from this one, and its command line; children lead groups of their own."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    parents[int(entry.name)] = int(fields[1])
    found, look = {}, [pid]
    while look:
        parent = look.pop()
        for child in [child for child, its in parents.items() if its == parent]:
            found[child] = command_line(child)
            look.append(child)
    return found


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def left_behind(run: str) -> dict[int, str]:
    """Processes of this run that are still there, by the mark in their environment."""
    mark = f"{RUN}={run}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                pid, environment = int(entry.name), (entry / "environ").read_bytes().split(b"\0")
                if mark in environment and state_of(pid) not in "ZX":
                    found[pid] = command_line(pid)
    return found
