"""What idle workers cost the database: the CPU of all its processes while there is nothing to do."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from psycopg import Connection

from faultline.bench.drain import Progress
from faultline.bench.weight import PROC, children_of, cpu_seconds
from faultline.config import Settings, WorkerConfig
from faultline.errors import FaultlineError
from faultline.running import work
from faultline.store.connect import connect
from faultline.task import Registry
from faultline.worker.worker import Worker

CONNECTIONS_A_WORKER: Final = 6
CONNECTIONS_SPARE: Final = 10
SETTLE_SECONDS: Final = 15.0
"""Between the last worker's hello and the first look: plans are made, pauses have grown to full length."""

SAMPLE_SECONDS: Final = 1.0
START_SECONDS_MAX: Final = 300.0


@dataclass(frozen=True, slots=True)
class Idle:
    """What a number of workers with nothing to do ask of the server."""

    workers: int
    seconds: float
    server_cpu_percent: float
    """Of one core, all processes of the server together."""
    commits_per_second: float

    def document(self) -> dict[str, Any]:
        return asdict(self)


def server_settings(workers: int) -> dict[str, str]:
    """What a server needs to be started with to take so many workers."""
    return {"max_connections": str(workers * CONNECTIONS_A_WORKER + CONNECTIONS_SPARE)}


def idle(dsn: str, workers: int, seconds: float, progress: Progress) -> Idle:
    """Start workers with default settings, leave them alone, and see what the server does meanwhile.

    The server has to be on this machine. The workers share one process, since only the server is measured;
    each has its own connections, its pacemaker and its watchdog, as if it were alone.
    """
    with connect(dsn) as conn:
        server = Server(conn)
        server.check_room(workers)
        return asyncio.run(_measure(dsn, server, workers, seconds, progress))


async def _measure(dsn: str, server: "Server", workers: int, seconds: float, progress: Progress) -> Idle:
    loop = asyncio.get_running_loop()
    async with _crowd(dsn, workers, progress):
        await asyncio.sleep(SETTLE_SECONDS)
        commits_before, began = server.commits(), loop.time()
        server.look()
        while (gone := loop.time() - began) < seconds:
            await asyncio.sleep(min(SAMPLE_SECONDS, seconds - gone))
            server.look()
            progress("idle", round(min(seconds, loop.time() - began)))
        lasted, commits = loop.time() - began, server.commits() - commits_before
    return Idle(workers, lasted, server.used() / lasted * 100, commits / lasted)


@contextlib.asynccontextmanager
async def _crowd(dsn: str, workers: int, progress: Progress) -> AsyncIterator[None]:
    """So many workers, all ready, for as long as the block runs."""
    ready: list[Worker] = []
    settings, config = Settings(dsn=dsn), WorkerConfig()
    crowd = [
        asyncio.create_task(work(Registry(), settings, config, name=f"idle-{number}", on_ready=ready.append))
        for number in range(workers)
    ]
    try:
        async with asyncio.timeout(START_SECONDS_MAX):
            while len(ready) < workers:
                for task in crowd:
                    if task.done():
                        await task  # it cannot have ended but by an error
                progress("start", len(ready))
                await asyncio.sleep(0.1)
        yield
    finally:
        for worker in ready:
            worker.stop()
        await asyncio.gather(*crowd, return_exceptions=True)


class Server:
    """The processes of a server on this machine, and the CPU they have used since the first look."""

    def __init__(self, conn: Connection[Any]) -> None:
        self._conn = conn
        backend = conn.info.backend_pid
        stat = PROC / str(backend) / "stat"
        if not stat.exists() or "postgres" not in (PROC / str(backend) / "comm").read_text():
            raise FaultlineError(
                "the CPU of a server can only be read where it runs, on Linux; run this there"
            )
        self._postmaster = int(stat.read_text().rpartition(")")[2].split()[1])
        self._before: dict[int, float] | None = None
        self._last: dict[int, float] = {}

    def check_room(self, workers: int) -> None:
        wanted = int(server_settings(workers)["max_connections"])
        if (found := self._number("select current_setting('max_connections')::int")) < wanted:
            raise FaultlineError(f"the server takes {found} connections, {workers} workers need {wanted}")

    def commits(self) -> int:
        """What a session did is counted a second late, at both ends alike."""
        return self._number(
            "select sum(xact_commit)::bigint from pg_stat_database where datname = current_database()"
        )

    def look(self) -> None:
        """Note what each process has used; what came since the first look counts from nothing."""
        for pid in (self._postmaster, *children_of([self._postmaster])):
            if (used := cpu_seconds([pid])) is not None:
                self._last[pid] = used
        if self._before is None:
            self._before = dict(self._last)

    def used(self) -> float:
        """CPU seconds from the first look to the last one; of one that ended, to the last before its end."""
        before = self._before or {}
        return sum(used - before.get(pid, 0.0) for pid, used in self._last.items())

    def _number(self, question: str) -> int:
        row = self._conn.execute(question.encode()).fetchone()
        assert row is not None
        return int(row[0])
