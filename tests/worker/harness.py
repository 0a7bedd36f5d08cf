"""Workers for tests: one in this process, on a loop of its own; and real ones, to be killed and frozen."""

import asyncio
import contextlib
import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4, uuid5

import psycopg

from faultline.config import Settings, WorkerConfig
from faultline.job import Job
from faultline.lease import Lease
from faultline.runtime.run_worker import work
from faultline.task import Registry, TaskSpec, spec_of
from faultline.worker.attempt import Attempt
from faultline.worker.claiming.claimer import Claimer
from faultline.worker.claiming.job_intake import JobIntake
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.outage import Outage
from faultline.worker.state import WorkerState
from faultline.worker.worker import Worker

T = TypeVar("T")

LEASE = timedelta(seconds=1)
PATIENCE = float(os.environ.get("FAULTLINE_TEST_PATIENCE", 60))
"""How long a test waits for what must come: generous, since nothing here is about speed.

Mutants, for which it never comes, are given less.
"""

PROGRAM = Path(__file__).with_name("program.py")


def quick(**changes: Any) -> WorkerConfig:
    """A worker with few runners, and leases long enough for the slowest machine."""
    return WorkerConfig(**{"grace": timedelta(seconds=5), "jobs_max": 4, **changes})


def short(**changes: Any) -> WorkerConfig:
    """A worker whose leases end within the patience of a test."""
    return quick(**{"lease_for": LEASE, **changes})


def registry(*handlers: Callable[..., Any] | TaskSpec) -> Registry:
    """The tasks of a test: plain functions, or specs where options are wanted."""
    tasks = Registry()
    for handler in handlers:
        tasks.add(handler if isinstance(handler, TaskSpec) else spec_of(handler))
    return tasks


def eventually(look: Callable[[], T], patience: float = PATIENCE) -> T:
    """What `look` gives, as soon as it is true of something."""
    give_up_at = time.monotonic() + patience
    with _connections_kept():
        while not (seen := look()):
            assert time.monotonic() < give_up_at, f"waited {patience} s in vain; last seen: {seen!r}"
            time.sleep(0.02)
    return seen


_KEPT: ContextVar[dict[str, psycopg.Connection[Any]] | None] = ContextVar("kept", default=None)


@contextlib.contextmanager
def _connections_kept() -> Iterator[None]:
    """While a test waits, `rows` asks over one connection: a new one for each look costs more CPU
    than most of what is waited for."""
    if _KEPT.get() is not None:
        yield
        return
    kept: dict[str, psycopg.Connection[Any]] = {}
    token = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(token)
        for conn in kept.values():
            conn.close()


class InProcess:
    """A worker on a thread of its own, with its watchdog unless told otherwise."""

    def __init__(
        self, dsn: str | None, tasks: Registry, config: WorkerConfig, pooler: str = "none", **how: Any
    ) -> None:
        self.worker: Worker | None = None
        self.code: int | None = None
        self.error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        settings = Settings.read(dsn, pooler, environment={})
        self._job = work(tasks, settings, config, on_ready=self._is_ready, **how)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "InProcess":
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def _is_ready(self, worker: Worker) -> None:
        self.worker = worker
        self._ready.set()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                self.code = runner.run(self._job)
        except BaseException as error:
            self.error = error
        self._ready.set()

    def stop(self) -> None:
        """What SIGTERM does."""
        if self.worker is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.worker.stop)

    def join(self) -> int | None:
        """Wait for its end and answer its exit code; what it died of is raised here."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the worker did not end"
        if self.error is not None:
            raise self.error
        return self.code

    def leave(self) -> int | None:
        self.stop()
        return self.join()


def claimer_of(state: WorkerState, backend: Any) -> Claimer:
    """A claimer over a stand-in for a backend; its jobs have no pacemaker and no transactions."""
    nobody: Any = None
    return Claimer(state, backend, JobIntake(state, registry(), nobody, 1, nobody), Outage(15.0))


def attempt_of(worker: InProcess, job: int) -> Attempt:
    """A running job as its worker has it: its deadline can be moved instead of waited for."""
    assert worker.worker is not None
    return next(attempt for attempt in list(worker.worker._state.running) if attempt.job.id == job)


def an_attempt(lease_table: LeaseTable, job_id: int = 7) -> Attempt:
    """A lease that no database knows, in a lease table, for a handler that does nothing."""
    lease = Lease(job_id, 3, uuid4(), 60.0, time.monotonic())
    job = Job(job_id, "pid", "default", 1, 5, 0, 3, None, datetime.now(UTC))
    end = time.monotonic() + 60
    return Attempt.of(lease, lease_table, job=job, spec=spec_of(_pid), args="{}", retry=None, timeout_at=end)


async def _pid() -> int:
    return os.getpid()


@contextlib.contextmanager
def working(
    dsn: str | None, *handlers: Callable[..., Any] | TaskSpec, config: WorkerConfig | None = None, **how: Any
) -> Iterator[InProcess]:
    """A worker that works while the block runs, and leaves in good order after it."""
    worker = InProcess(dsn, registry(*handlers), config or quick(), **how).start()
    try:
        yield worker
    finally:
        worker.leave()


def drain(
    dsn: str | None, *handlers: Callable[..., Any] | TaskSpec, config: WorkerConfig | None = None, **how: Any
) -> int | None:
    """Work until nothing is due, and answer the exit code."""
    return InProcess(dsn, registry(*handlers), config or quick(), until_empty=True, **how).start().join()


class RealWorker:
    """A worker in a process of its own, which can be stopped, continued and killed."""

    def __init__(
        self, dsn: str, log: Path, *, environment: dict[str, str] | None = None, **options: Any
    ) -> None:
        self.log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(PROGRAM), json.dumps({"dsn": dsn, **options})],
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(environment or {})},
            )

    def wait_ready(self) -> "RealWorker":
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said == b"ready\n", self.log.read_text()
        return self

    @property
    def pid(self) -> int:
        return self.process.pid

    def pacemaker(self) -> int:
        """The process id of its pacemaker, once it has one."""
        return eventually(lambda: children(self.pid))[0]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(PATIENCE)

    def lines(self) -> list[dict[str, Any]]:
        """What it has logged, a record a line."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def end(self) -> None:
        """Whatever state it is in: gone."""
        for pid in children(self.pid) if self.process.poll() is None else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def effect_key(dsn: str, job: int, name: str) -> str:
    """The idempotency key of a job that is due, by the recipe in the protocol's page."""
    ((seed,),) = rows(dsn, "select key_seed from faultline.active where id = %s", job)
    return str(uuid5(UUID(bytes=seed + struct.pack("!q", job)), name))


def rows(dsn: str, sql: str, *args: Any) -> list[Any]:
    """The rows of a database, read over a connection of the test's own."""
    kept = _KEPT.get()
    if kept is None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            return conn.execute(sql, args or None).fetchall()
    if dsn in kept:
        with contextlib.suppress(psycopg.OperationalError):  # it was ended since the last look
            return kept[dsn].execute(sql, args or None).fetchall()
        kept.pop(dsn).close()
    kept[dsn] = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
    return kept[dsn].execute(sql, args or None).fetchall()


def execute(dsn: str, sql: str, *args: Any) -> None:
    """What a person with psql does."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(sql, args or None)
