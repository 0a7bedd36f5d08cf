"""An app whose handlers run in child processes; a module of its own, since a child has to import it."""

import asyncio
import ctypes
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from faultline import Faultline, Retry, bury
from faultline.errors import HandlerDied, LeaseLost
from faultline.job import Job
from faultline.outcome import Cancel, Dead, Snooze
from faultline.retry import Constant
from faultline.telemetry import current
from faultline.worker.attempt import AttemptPhase
from faultline.worker.processes.child_attempt import ChildAttempt
from tests.support import TAKE_OVER

app = Faultline()
log = logging.getLogger("shop")

INSERT = "insert into effects (job_id, token, said) values (%s, %s, %s)"


def note(job: Job, said: Any) -> None:
    """What the child was given is in its environment: its worker's database."""
    with psycopg.connect(os.environ["FAULTLINE_DSN"], autocommit=True) as conn:
        conn.execute(
            "insert into notes (job_id, token, said) values (%s, %s, %s)", [job.id, job.token, str(said)]
        )


@app.task(run="process")
def who(job: Job) -> dict[str, Any]:
    found = current.get()
    return {
        "pid": os.getpid(), "parent": os.getppid(), "id": job.id, "task": job.task, "queue": job.queue,
        "attempt": job.attempt, "token": job.token, "key": job.key, "max_attempts": job.max_attempts,
        "idempotency_key": job.idempotency_key("intent"), "lost": job.lost, "current": found is job,
        "main_thread": threading.current_thread() is threading.main_thread(),
    }  # fmt: skip


@app.task(run="process")
async def who_async() -> dict[str, Any]:
    await asyncio.sleep(0.01)
    return {"pid": os.getpid(), "loop": asyncio.get_running_loop() is not None}


@app.task(run="process")
def pid() -> int:
    return os.getpid()


@app.task(run="process")
def add(first: int, second: int = 1) -> int:
    return first + second


@app.task(run="process", retry=Retry(on={PermissionError: bury, HandlerDied: Constant(timedelta(0))}))
def speak(word: str) -> Any:
    match word:
        case "snooze":
            return Snooze(timedelta(days=3, microseconds=7), "not \ud800 ready")
        case "raise snooze":
            raise Snooze(timedelta(minutes=5))
        case "cancel":
            raise Cancel("withdrawn")
        case "dead":
            return Dead("the account is closed")
        case "bury":
            raise PermissionError("never")
        case "object":
            return object()
        case "nan":
            return float("nan")
        case "exit":
            sys.exit(3)
        case "big":
            return "é\n" * 170_000
    return word


@app.task(run="process")
async def speak_async(word: str) -> Any:
    if word == "exit":
        sys.exit(3)
    if word == "cancel":
        raise asyncio.CancelledError
    raise Dead(word)


def deeply() -> None:
    raise ValueError("no such order")


@app.task(run="process")
def fail() -> None:
    try:
        deeply()
    except ValueError as error:
        raise RuntimeError("the charge failed") from error


@app.task(run="process", retry=Constant(timedelta(0)))
def die(job: Job, how: str) -> str:
    note(job, os.getpid())
    if job.attempt > 1:
        return "survived"
    match how:
        case "exit":
            os._exit(7)
        case "signal":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            ctypes.string_at(0)
        case "close all":
            os.closerange(3, 100)
        case "with a fork":
            if os.fork() == 0:
                time.sleep(60)
            os._exit(7)
    return "lived"


@app.task(run="process")
def spin(job: Job, seconds: float = 60) -> str:
    """Computes, and looks at nothing."""
    note(job, os.getpid())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(10_000))
    note(job, "ended")
    return "spun"


@app.task(run="process")
def backtrack(job: Job) -> None:
    """One call that neither returns nor lets any other thread of this process run."""
    note(job, os.getpid())
    re.match(r"(a|a)*$", "a" * 40 + "b")
    note(job, "ended")


@app.task(run="process")
def family(job: Job) -> None:
    """Starts a program of its own and waits for it, and would not hear SIGTERM."""
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    note(job, os.getpid())
    note(job, program.pid)
    program.wait()


@app.task(run="process")
def polite(job: Job) -> str:
    """Looks at job.lost, as a handler in a thread does."""
    note(job, os.getpid())
    job.wait_lost(60)
    note(job, f"lost: {job.lost}")
    return "stopped"


@app.task(run="process")
async def polite_async(job: Job) -> None:
    note(job, os.getpid())
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        note(job, "cancelled")
        raise


@app.task(run="process")
def nap(job: Job, seconds: float) -> int:
    note(job, "began")
    time.sleep(seconds)
    note(job, "ended")
    return os.getpid()


@app.task(run="process")
def tell() -> None:
    print("on standard output")
    log.info("in a child")


@app.task(run="process")
def write(job: Job, then: str = "", isolation: int | None = None) -> str | None:
    note(job, os.getpid())
    level = None if isolation is None else psycopg.IsolationLevel(isolation)
    if then == "die unheard":
        ChildAttempt.__setattr__ = _die_when(AttemptPhase.COMMITTED)  # type: ignore[method-assign]
    elif then == "die asked":
        ChildAttempt.__setattr__ = _die_when(AttemptPhase.COMMITTING)  # type: ignore[method-assign]
    with job.complete(result="committed", isolation=level) as conn:
        conn.execute(INSERT, [job.id, job.token, "written"])
        if then == "steal":
            take_away(job)
        if then == "fail":
            raise ValueError("after the insert")
        if then == "wait":
            time.sleep(4.5)
    if then == "die":
        os._exit(7)
    if then == "spin":
        note(job, "committed")
        time.sleep(60)
    return "too late" if then == "return" else None


@app.task(run="process")
async def write_async(job: Job, then: str = "") -> None:
    async with job.complete(result="committed") as conn:
        await conn.execute(INSERT, [job.id, job.token, "written"])
        if then == "steal":
            await asyncio.to_thread(take_away, job)


def take_away(job: Job) -> None:
    """What a reap and another worker's claim leave behind: a higher token, another claim."""
    with psycopg.connect(os.environ["FAULTLINE_DSN"], autocommit=True) as conn:
        conn.execute(TAKE_OVER, [job.id])


def _die_when(phase: AttemptPhase) -> Any:
    """The process ends between the commit and the word of it, or before the commit is sent."""
    usual = ChildAttempt.__setattr__

    def die(self: ChildAttempt, attribute: str, value: Any) -> None:
        if value is phase is AttemptPhase.COMMITTED:
            os._exit(7)
        usual(self, attribute, value)
        if value is phase:
            os._exit(7)

    return die


@app.task(run="process")
def leave_behind(job: Job) -> str:
    """A thread of its own opens the block and commits it after the handler has returned."""
    inside = threading.Event()

    def late() -> None:
        try:
            with job.complete(result="late") as conn:
                conn.execute(INSERT, [job.id, job.token, "late"])
                inside.set()
                time.sleep(1)
        except LeaseLost:
            note(job, "refused")
        else:
            note(job, "committed")

    threading.Thread(target=late).start()
    inside.wait()
    return "returned"


@app.task(run="process", retry=Constant(timedelta(0)))
def babble(job: Job) -> None:
    """Writes on the line between the worker and its process."""
    note(job, os.getpid())
    if job.attempt == 1:
        os.write(int(sys.argv[1]), b"\xff" * 100)
        time.sleep(60)


@app.task(run="process")
def enqueue_another() -> int:
    return add.enqueue(1).id


@app.task(run="thread")
def in_thread() -> int:
    return os.getpid()


class Shop:
    @staticmethod
    @app.task(run="process", name="shop.close")
    def close_shop() -> str:
        return "closed"


@app.task(run="process")
def touch(job: Job) -> None:
    """Nothing but a transaction: where there is no database it cannot even begin."""
    with job.complete() as conn:
        conn.execute("select 1")


@app.task
async def block(job: Job, seconds: float) -> None:
    """Blocks the loop of its worker without using the processor."""
    note(job, "began")
    time.sleep(seconds)  # noqa: ASYNC251 - which is what is shown


@app.task
async def block_until(job: Job, path: str) -> None:
    """Blocks the loop until a file is there."""
    note(job, "began")
    while not Path(path).exists():  # noqa: ASYNC240
        time.sleep(0.02)  # noqa: ASYNC251


@app.task(run="thread")
def nap_in_thread(job: Job, seconds: float) -> None:
    note(job, "began")
    time.sleep(seconds)
