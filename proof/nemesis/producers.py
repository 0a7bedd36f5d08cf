"""The producers: a process that enqueues in every way there is, and notes what it was told, line by line.

`python -m proof.nemesis.producers`: FAULTLINE_DSN, NEMESIS_NOTES (a file), NEMESIS_SEED and NEMESIS_RATE in
its environment. What it noted as acknowledged is what the checker holds the queue to.
"""

import asyncio
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg

from faultline.client.task_client import Task
from faultline.errors import FaultlineError, JobNotFound, OutcomeUnknown, WrongState
from proof.nemesis import app as work

TASKS: Final[dict[str, float]] = {
    "move": 6, "move_in_thread": 4, "move_in_process": 2, "move_late": 2, "move_at_repeatable_read": 2,
    "stumble": 2, "doomed": 0.5, "nap": 2, "plain": 6, "plain_in_thread": 3, "long_walk": 0.7, "call_out": 3,
    "ambush": 2, "plain_ambush": 2, "crowd": 4, "in_line": 2.5, "by_turns": 2, "metered": 1.5,
}  # fmt: skip

ACCOUNTS: Final = 3
KEYS_APART_SECONDS: Final = 2.0
REQUESTS_A_PROCESS: Final = 1_000_000
TROUBLE: Final = (FaultlineError, psycopg.Error, OSError)
Told = dict[str, Any]


class Notebook:
    """Appends one line of JSON a fact; a line is written whole before the next thing is tried."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._next = int(os.environ.get("NEMESIS_GENERATION", "0")) * REQUESTS_A_PROCESS
        self._lock = threading.Lock()

    def request(self) -> int:
        with self._lock:
            self._next += 1
            return self._next

    def note(self, **facts: Any) -> None:
        os.write(self._fd, json.dumps({"at": time.time(), **facts}).encode() + b"\n")


class Producer:
    """One thread of the process: its own dice, its own share of the rate."""

    def __init__(self, name: str, notes: Notebook, every: float) -> None:
        self.name, self.notes, self.every = name, notes, every
        self.dice = random.Random(f"{os.environ['NEMESIS_SEED']}-{name}")
        self.known: list[int] = []
        self.unanswered = 0
        """Enqueues without an answer, which may be committed after a later one: the order of ids is kept
        only by a producer that orders its commits, so each of them begins new accounts."""

    def draw(self, request: int) -> tuple[Task[..., Any], dict[str, Any]]:
        """A task, and its args for this request."""
        name = self.dice.choices(list(TASKS), list(TASKS.values()))[0]
        found: Task[..., Any] = getattr(work, name)
        limit = work.LIMITS.get(name)
        if limit is None or limit.key is None:
            return found, {"request": request}
        return found, {"request": request, limit.key: self._account(request, limit.per_key == 1)}

    def _account(self, request: int, in_order: bool) -> str:
        if not in_order:
            return f"all-{request % ACCOUNTS}"
        generation = os.environ.get("NEMESIS_GENERATION", "0")
        return f"{self.name}-{generation}-{self.unanswered}-{request % ACCOUNTS}"

    def pause(self) -> float:
        return self.dice.expovariate(1 / self.every)

    def told(self, request: int, said: str, job: int | None = None, **more: Any) -> None:
        self.notes.note(how=self.name, request=request, said=said, job=job, **more)
        self.unanswered += said in ("unknown", "error")
        if said == "ok" and job is not None:
            self.known = [*self.known[-50:], job]

    def caught(self, request: int, error: Exception) -> None:
        said = "unknown" if isinstance(error, OutcomeUnknown) else "error"
        self.told(request, said, error=type(error).__name__)


def by_itself(producer: Producer) -> None:
    """The sync client, one job a call; sometimes with a key, and then again until it is answered."""
    request = producer.notes.request()
    if producer.dice.random() < 0.3:
        _with_key(producer, request)
        return
    try:
        task, args = producer.draw(request)
        handle = task.enqueue(**args)
        producer.told(request, "ok", handle.id)
    except TROUBLE as error:
        producer.caught(request, error)


def _with_key(producer: Producer, request: int) -> None:
    drawn, args = producer.draw(request)
    task = drawn.using(key=f"request-{request}")
    for _ in range(5):
        try:
            first, second = task.enqueue(**args), task.enqueue(**args)
        except TROUBLE:
            time.sleep(KEYS_APART_SECONDS / 5)
            continue
        producer.told(request, "ok", first.id, again=second.id)
        return
    producer.told(request, "unknown", key=True)


def in_a_transaction(producer: Producer) -> None:
    """Together with a row of the user's own, committed or rolled back on purpose."""
    request, stays = producer.notes.request(), producer.dice.random() < 0.8
    dsn = os.environ["FAULTLINE_DSN"]
    job, sent = None, False
    try:
        with psycopg.connect(dsn, connect_timeout=5) as conn:
            conn.execute("insert into storm.orders (request) values (%s)", [request])
            task, args = producer.draw(request)
            job = task.enqueue_in(conn, **args).id
            if not stays:
                conn.rollback()
                producer.told(request, "rolled back", job)
                return
            sent = True
            conn.commit()
        producer.told(request, "ok", job, order=True)
    except TROUBLE as error:
        # The error does not tell an unanswered commit apart; a statement that failed is no commit.
        producer.told(request, "unknown" if sent else "error", job, error=type(error).__name__, order=True)


def cancel_one(producer: Producer) -> None:
    """Take back a job that was acknowledged a moment ago."""
    if not producer.known or producer.dice.random() > 0.06:
        return
    job = producer.known.pop(producer.dice.randrange(len(producer.known)))
    try:
        work.app.cancel(job, "the storm changed its mind")
        producer.notes.note(how="cancel", job=job, said="cancelled")
    except (WrongState, JobNotFound) as ended:
        producer.notes.note(how="cancel", job=job, said="too late", error=type(ended).__name__)
    except TROUBLE as error:
        producer.notes.note(how="cancel", job=job, said="unknown", error=type(error).__name__)


def keep_on(producer: Producer, act: Callable[[Producer], None]) -> None:
    while True:
        time.sleep(producer.pause())
        act(producer)
        if act is by_itself:
            cancel_one(producer)


async def in_a_loop(producer: Producer) -> None:
    """The async client: one by one, and many at once."""
    while True:
        await asyncio.sleep(producer.pause())
        if producer.dice.random() < 0.15:
            await _many(producer)
            continue
        request = producer.notes.request()
        try:
            task, args = producer.draw(request)
            handle = await task.aenqueue(**args)
            producer.told(request, "ok", handle.id)
        except TROUBLE as error:
            producer.caught(request, error)


async def _many(producer: Producer) -> None:
    requests = [producer.notes.request() for _ in range(producer.dice.randint(2, 8))]
    batch = [task.new(**args) for task, args in map(producer.draw, requests)]
    try:
        jobs = await work.app.aenqueue_many(batch)
    except TROUBLE as error:
        for request in requests:
            producer.caught(request, error)
        return
    for request, job in zip(requests, jobs, strict=True):
        producer.told(request, "ok", job)


def main() -> int:
    """Enqueue until SIGTERM."""
    notes = Notebook(os.environ["NEMESIS_NOTES"])
    every = 4 / float(os.environ["NEMESIS_RATE"])
    for name, act in {"alone": by_itself, "also alone": by_itself, "in": in_a_transaction}.items():
        producer = Producer(name, notes, every)
        threading.Thread(target=keep_on, args=[producer, act], daemon=True).start()
    loop = Producer("loop", notes, every)
    threading.Thread(target=lambda: asyncio.run(in_a_loop(loop)), daemon=True).start()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    stop.wait()
    sys.stdout.flush()
    os._exit(0)  # in the middle of a call, as real producers end; an enqueue without a note was not promised


if __name__ == "__main__":
    sys.exit(main())
