"""What every Python adapter shares: the handler's probe and the command line.

An adapter is one file beside this one that subclasses System and ends with `main(ThatSystem())`. The runner
talks to it through its command line alone, so a Node adapter (`_adapter.mjs`) looks the same from outside:

  meta             print JSON: versions, settings, how to count what is left
  setup            install the schema in an empty database
  single N CAP     enqueue up to N jobs, one awaited call at a time (stop at CAP seconds)
  bulk N CAP       enqueue N jobs with the library's own bulk API (stop at CAP seconds)
  latency N MS     enqueue N jobs, one every MS milliseconds
  sustain N S      keep N jobs waiting for S seconds while a worker drains; count what it handles meanwhile
  offer RATE S     enqueue RATE jobs a second for S seconds, a small bulk every 10 ms, on time or late
  worker           run a worker until killed

Environment: BENCH_DSN, BENCH_REDIS_URL, BENCH_RUN_DIR (scratch shared with the runner), BENCH_MODE
(drain, latency, slow, or one_row: the handler inserts a row), BENCH_SLEEP, BENCH_PROFILE (default or
recovery).
"""

import asyncio
import importlib.metadata
import json
import os
import struct
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")
Payload = dict[str, Any]

DSN = os.environ.get("BENCH_DSN", "")
REDIS_URL = os.environ.get("BENCH_REDIS_URL", "")
RUN_DIR = os.environ.get("BENCH_RUN_DIR", ".")
MODE = os.environ.get("BENCH_MODE", "drain")
SLEEP = float(os.environ.get("BENCH_SLEEP", "60"))
RECOVERY = os.environ.get("BENCH_PROFILE", "default") == "recovery"
HERE = Path(__file__).parent
PAD = "x" * 64
WARM_UP = 20
ROWS_POOL = int(os.environ.get("BENCH_ROWS_POOL", "10"))
"""Connections on which handlers insert, of those that bring none: as many as Faultline runs at once."""

INSERT = "insert into bench_effects (seq, pgid) values (%s, %s)"
INSERT_NUMBERED = "insert into bench_effects (seq, pgid) values ($1, $2)"

USUAL = ("single", "drain1", "drain2", "latency", "sustained", "offered", "crash", "zombie", "zombie_mid")
ONE_ROW = ("one_row",)
"""The phase in which handlers insert a row; each adapter writes it in its library's own way."""
SUSTAIN_BATCH = 500
OFFER_EVERY = 0.01


def knob(name: str, default: int) -> int:
    """A setting that may be overridden to tune a system: BENCH_CONCURRENCY=20 and so on."""
    return int(os.environ.get("BENCH_" + name.upper(), default))


def payload(seq: int) -> Payload:
    """About 105 bytes of JSON."""
    return {"seq": seq, "kind": "order.created", "pad": PAD}


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


class Probe:
    """Called by every handler; tells the runner what happened, outside the database."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._seen = self._count = self._lines = 0

    def _open(self) -> None:
        # Files of each process's own, so that forked workers are counted rightly.
        self._pid = os.getpid()
        self._seen = 0
        base = f"{RUN_DIR}/{os.getpgid(0)}.{self._pid}"
        self._count = os.open(base + ".count", os.O_RDWR | os.O_CREAT, 0o644)
        self._lines = os.open(base + ".lines", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def start(self, job: Payload) -> None:
        if self._pid != os.getpid():
            self._open()
        self._seen += 1
        if self._seen == 1:
            os.pwrite(self._count, struct.pack("<qq", 1, time.time_ns()), 0)
        else:
            os.pwrite(self._count, struct.pack("<q", self._seen), 0)
        if MODE not in ("drain", "one_row"):
            self.line("start", job["seq"])

    def line(self, what: str, seq: int) -> None:
        os.write(self._lines, f"{what} {seq} {os.getpgid(0)} {time.time_ns()}\n".encode())

    def finish(self, job: Payload) -> None:
        """The handler's own effect, a plain INSERT on a connection of its own; then its last line."""
        import psycopg

        with psycopg.connect(DSN, autocommit=True) as conn:
            conn.execute("insert into bench_effects(seq, pgid) values (%s, %s)", (job["seq"], os.getpgid(0)))
        self.line("end", job["seq"])

    async def handle(
        self,
        job: Payload,
        beat: Callable[[], Awaitable[Any]] | None = None,
        insert: "Insert | None" = None,
    ) -> None:
        """The body of an async handler. `beat`: a heartbeat each second, where the library asks for one.

        `insert` writes a row where handlers do that.
        """
        self.start(job)
        if MODE == "one_row" and insert is not None:
            await insert(job["seq"])
        if MODE != "slow":
            return
        end = time.monotonic() + SLEEP
        while time.monotonic() < end:
            await asyncio.sleep(min(1.0, max(0.0, end - time.monotonic())))
            if beat is not None and time.monotonic() < end:
                await beat()
        self.finish(job)

    def handle_sync(self, job: Payload) -> None:
        """The body of a plain handler."""
        self.start(job)
        if MODE != "slow":
            return
        end = time.monotonic() + SLEEP
        while time.monotonic() < end:
            time.sleep(min(1.0, max(0.0, end - time.monotonic())))
        self.finish(job)


Insert = Callable[[int], Awaitable[Any]]
"""Inserts a row with this number, and commits it."""


class Rows:
    """Inserts over a pool of connections that is opened at the first row."""

    def __init__(self) -> None:
        self._pool: Any = None
        self._turn = asyncio.Lock()

    async def opened(self) -> Any:
        """The pool."""
        async with self._turn:
            if self._pool is None:
                self._pool = await self.open()
        return self._pool

    async def open(self) -> Any:
        raise NotImplementedError


class PsycopgRows(Rows):
    async def open(self) -> Any:
        from psycopg_pool import AsyncConnectionPool

        pool = AsyncConnectionPool(
            DSN, min_size=ROWS_POOL, max_size=ROWS_POOL, kwargs={"autocommit": True}, open=False
        )
        await pool.open(wait=True)
        return pool

    async def __call__(self, seq: int) -> None:
        pool = self._pool or await self.opened()
        async with pool.connection() as conn:
            await conn.execute(INSERT, (seq, os.getpid()))


class AsyncpgRows(Rows):
    async def open(self) -> Any:
        import asyncpg

        return await asyncpg.create_pool(DSN, min_size=ROWS_POOL, max_size=ROWS_POOL)

    async def __call__(self, seq: int) -> None:
        pool = self._pool or await self.opened()
        await pool.execute(INSERT_NUMBERED, seq, os.getpid())


class System:
    """One library behind the harness's verbs."""

    name: ClassVar[str] = "?"
    packages: ClassVar[list[str]] = []
    settings: ClassVar[str] = ""
    """What is set, for the page."""
    recovery: ClassVar[str] = ""
    """What the recovery profile sets; empty when crash recovery needs nothing beyond the defaults."""
    backend: ClassVar[str] = "postgres"
    remaining: ClassVar[dict[str, Any]] = {}
    """Counts unfinished jobs: {"sql": "select count(*) ..."} or {"redis": [["LLEN", "q"], ...]}; 0 means
    that everything is durably complete."""
    snapshot: ClassVar[str] = ""
    """SQL that shows the job's rows after the zombie test."""
    refusals: ClassVar[str] = ""
    """SQL that shows which late writes the library itself recorded as refused, where it does."""
    manual_recover: ClassVar[str] = ""
    """SQL of the documented manual recovery, where that is all there is."""
    relaunch: ClassVar[bool] = False
    """Whether recovery needs a new process with the dead worker's identity."""
    single_note: ClassVar[str] = ""
    bulk_note: ClassVar[str] = ""
    phases: ClassVar[tuple[str, ...]] = USUAL
    """What it is measured in."""
    row: ClassVar[str] = ""
    """How its handler inserts its row, for the page."""

    async def setup(self) -> None: ...

    async def open(self) -> None: ...

    async def enqueue_one(self, job: Payload) -> None:
        raise NotImplementedError

    async def enqueue_many(self, jobs: Sequence[Payload]) -> None:
        raise NotImplementedError

    async def close(self) -> None: ...

    async def worker(self, probe: Probe) -> None:
        raise NotImplementedError

    def worker_exec(self) -> list[str] | None:
        """The command line of the library's own worker, where it is run that way."""
        return None


async def _single(system: System, jobs: int, cap: float) -> Payload:
    await system.open()
    for number in range(WARM_UP):
        await system.enqueue_one(payload(-number))  # warm up connection and statements
    began = time.perf_counter()
    done = 0
    for number in range(jobs):
        await system.enqueue_one(payload(number))
        done += 1
        if time.perf_counter() - began > cap:
            break
    seconds = time.perf_counter() - began
    await system.close()
    return {"jobs": done, "seconds": seconds}


async def _bulk(system: System, count: int, cap: float) -> Payload:
    """Hand the library 5000 jobs at a time until all are in or `cap` seconds have passed."""
    await system.open()
    jobs = [payload(number) for number in range(count)]
    step = min(count, 1000 if system.bulk_note else 5000)
    done, began = 0, time.perf_counter()
    for batch in chunks(jobs, step):
        await system.enqueue_many(batch)
        done += len(batch)
        if time.perf_counter() - began > cap:
            break
    seconds = time.perf_counter() - began
    await system.close()
    return {"jobs": done, "seconds": seconds}


async def _latency(system: System, jobs: int, every_ms: float) -> Payload:
    await system.open()
    sent = []
    base = time.monotonic() + 0.05
    for number in range(jobs):
        delay = base + number * every_ms / 1000 - time.monotonic()
        if delay > 0:
            await asyncio.sleep(delay)
        called = time.time_ns()
        await system.enqueue_one(payload(number))
        sent.append((number, called, time.time_ns()))
    await system.close()
    return {"sent": sent}


def _handled() -> int:
    """How many handlers have begun, in all the worker's processes."""
    told = [file.read_bytes()[:8] for file in Path(RUN_DIR).glob("*.count")]
    return sum(struct.unpack("<q", count)[0] for count in told if len(count) == 8)


async def _sustain(system: System, depth: int, duration: float) -> Payload:
    """Keep the queue `depth` jobs deep. The first third of the time is to warm up and is not counted."""
    await system.open()
    made = before = 0
    began = time.perf_counter()
    window_began = 0.0
    while (now := time.perf_counter() - began) < duration:
        if not window_began and now > duration / 3:
            window_began, before = time.perf_counter(), _handled()
        if made - _handled() < depth:
            await system.enqueue_many([payload(made + number) for number in range(SUSTAIN_BATCH)])
            made += SUSTAIN_BATCH
        else:
            await asyncio.sleep(0.001)
    answer = {"jobs": made, "handled": _handled() - before, "seconds": time.perf_counter() - window_began}
    await system.close()
    return answer


async def _offer(system: System, rate: int, duration: float) -> Payload:
    """Enqueue on a timetable, whether or not the last batch was late; tells when each job was due."""
    await system.open()
    size = int(rate * OFFER_EVERY)
    sent: list[tuple[int, int]] = []
    base, base_ns = time.monotonic() + 0.05, time.time_ns() + 50_000_000
    for turn in range(int(duration / OFFER_EVERY)):
        delay = base + turn * OFFER_EVERY - time.monotonic()
        if delay > 0:
            await asyncio.sleep(delay)
        if time.monotonic() - base > duration:
            break
        numbers = range(turn * size, turn * size + size)
        await system.enqueue_many([payload(number) for number in numbers])
        sent += [(number, base_ns + int(turn * OFFER_EVERY * 1e9)) for number in numbers]
    await system.close()
    return {"sent": sent}


def _meta(system: System) -> Payload:
    told = (
        "name", "settings", "recovery", "backend", "remaining", "snapshot", "refusals", "manual_recover",
        "relaunch", "single_note", "bulk_note", "phases", "row",
    )  # fmt: skip
    versions = {package: importlib.metadata.version(package) for package in system.packages}
    return {**{name: getattr(system, name) for name in told}, "versions": versions}


def _work(system: System) -> None:
    command = system.worker_exec()
    if command:
        os.execvp(command[0], command)
    asyncio.run(system.worker(Probe()))


def main(system: System) -> None:
    """Do what the command line says, and print the answer after the word BENCH."""
    answer: Payload = {}
    match sys.argv[1:]:
        case ["meta"]:
            answer = _meta(system)
        case ["setup"]:
            asyncio.run(system.setup())
        case ["single", jobs, cap]:
            answer = asyncio.run(_single(system, int(jobs), float(cap)))
        case ["bulk", jobs, cap]:
            answer = asyncio.run(_bulk(system, int(jobs), float(cap)))
        case ["latency", jobs, every_ms]:
            answer = asyncio.run(_latency(system, int(jobs), float(every_ms)))
        case ["sustain", depth, seconds]:
            answer = asyncio.run(_sustain(system, int(depth), float(seconds)))
        case ["offer", rate, seconds]:
            answer = asyncio.run(_offer(system, int(rate), float(seconds)))
        case ["worker"]:
            _work(system)
            return
        case other:
            raise SystemExit(f"unknown command {other}")
    print("BENCH " + json.dumps(answer), flush=True)
