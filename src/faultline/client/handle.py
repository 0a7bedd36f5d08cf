"""A handle on one job: look at it, wait for it, cancel it."""

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from faultline.args import ResultReader
from faultline.client.app_stores import refuse_in_a_loop
from faultline.client.sender import Sender
from faultline.errors import (
    BadDocument,
    JobCancelled,
    JobDead,
    JobNotFound,
    OutOfBounds,
    ResultNotKept,
    WaitTimeout,
)
from faultline.job import JobInfo, JobState
from faultline.store import calls

R = TypeVar("R")
J = TypeVar("J")

PAUSE_SECONDS_MIN: Final = 0.005
PAUSE_SECONDS_MAX: Final = 0.25


class Handle(Generic[R]):
    """One job that was enqueued, by its id.

        handle = charge.enqueue(order_id=7)
        handle.id                      # keep it; `charge.handle(id)` gives the handle back
        handle.result(timeout=30)      # what the handler returned, with its type
        await handle.aresult(timeout=30)

    >>> from faultline import Faultline
    >>> app = Faultline("dbname=shop")
    >>> @app.task
    ... def charge(order_id: int) -> str: return "paid"
    >>> charge.handle(7)
    Handle(id=7)
    """

    __slots__ = ("_reader", "_sender", "id", "is_new")

    def __init__(self, id: int, sender: Sender, reader: ResultReader, is_new: bool | None = None) -> None:
        self.id = id
        self.is_new = is_new
        """Whether the enqueue made the job, or its key named an older one; None of a handle by id."""
        self._sender = sender
        self._reader = reader

    def info(self) -> JobInfo:
        """The job as it stands now, or JobNotFound."""
        return found(self._sender.run(calls.get(self.id), "info"), self.id)

    async def ainfo(self) -> JobInfo:
        """The job as it stands now, or JobNotFound."""
        return found(await self._sender.arun(calls.get(self.id)), self.id)

    def result(self, timeout: timedelta | float | None = None) -> R:
        """Wait for the job to end and give what its handler returned.

        Raises JobDead or JobCancelled when it ended otherwise, ResultNotKept when its queue keeps no results,
        and WaitTimeout when it has not ended in time (seconds, or a timedelta; without one it waits for
        ever). With synchronous replication the end is told once a standby has it, as the answer to a write
        is; `info` tells what stands on this server.
        """
        refuse_in_a_loop("result")
        for pause in _pauses(self.id, timeout):
            info = found(self._sender.run(calls.get_confirmed(self.id), "result"), self.id)
            if info.state.ended:
                return self._read(info)
            time.sleep(pause)
        raise AssertionError("pauses end by raising")

    async def aresult(self, timeout: timedelta | float | None = None) -> R:
        """Wait for the job to end and give what its handler returned; raises as `result` does."""
        for pause in _pauses(self.id, timeout):
            info = found(await self._sender.arun(calls.get_confirmed(self.id)), self.id)
            if info.state.ended:
                return self._read(info)
            await asyncio.sleep(pause)
        raise AssertionError("pauses end by raising")

    def cancel(self, reason: str = "") -> None:
        """End the job for good; a running one is stopped, and nothing it does can commit any more."""
        self._sender.run(calls.cancel(self.id, reason or None), "cancel", calls.wake_cancelled([self.id]))

    async def acancel(self, reason: str = "") -> None:
        """End the job for good; a running one is stopped, and nothing it does can commit any more."""
        await self._sender.arun(calls.cancel(self.id, reason or None), calls.wake_cancelled([self.id]))

    def _read(self, info: JobInfo) -> R:
        match info.state:
            case JobState.DEAD:
                raise JobDead(info)
            case JobState.CANCELLED:
                raise JobCancelled(info)
            case _:
                return self._result(info)

    def _result(self, info: JobInfo) -> R:
        try:
            result: R = self._reader.read(info.result)
        except BadDocument:
            if info.args is not None:
                raise
            raise ResultNotKept(
                f"job {info.id} succeeded, and its result was not kept: queue {info.queue} keeps an outline "
                f"of its successes. For those to come `faultline queues keep full {info.queue}` changes that"
            ) from None
        return result

    def __repr__(self) -> str:
        return f"Handle(id={self.id})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


def found(info: J | None, job_id: int) -> J:
    """The job, or JobNotFound."""
    if info is None:
        raise JobNotFound(
            f"there is no trace of job {job_id}: the transaction that enqueued it has not committed, it "
            "never existed here, its record was pruned, it succeeded in a queue that keeps nothing, or a "
            "failover lost it"
        )
    return info


def _pauses(job_id: int, timeout: timedelta | float | None) -> Iterator[float]:
    """The pause between polls: short at first, then longer, never past the end."""
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float | timedelta)
    ):
        raise OutOfBounds(f"timeout is a number of seconds, or a timedelta; got {timeout!r:.60}")
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    started = time.monotonic()
    pause = PAUSE_SECONDS_MIN
    while seconds is None or (left := seconds - (time.monotonic() - started)) > 0:
        yield pause if seconds is None else min(pause, left)
        pause = min(pause * 1.5, PAUSE_SECONDS_MAX)
    yield from _last_look(job_id, seconds)


def _last_look(job_id: int, seconds: float) -> Iterator[float]:
    yield 0.0
    raise WaitTimeout(
        f"job {job_id} has not ended within {seconds:g} s; it goes on, wait again or look at info()"
    )
