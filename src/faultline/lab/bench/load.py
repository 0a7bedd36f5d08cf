"""What the bench has workers do: jobs to make, a queue to fill, a rate to offer."""

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from string import ascii_letters
from typing import Any, Final

from faultline.job import NewJob
from faultline.lab.bench.case import Case
from faultline.task import MAX_ATTEMPTS

BATCH: Final = 1_000
AROUND_BYTES: Final = 20
"""What stands around the padding in a job's args."""

TICK_NS: Final = 10_000_000
"""A rate is offered in a hundred calls a second: one producer commits not much more often for long."""

Make = Callable[[int], NewJob]


def padding(payload_bytes: int) -> str:
    """Letters that make a job's args about so large, and that do not compress."""
    return "".join(Random(7).choices(ascii_letters, k=max(0, payload_bytes - AROUND_BYTES)))


PAD: Final = padding(100)


def noop(number: int, pad: str = PAD, **options: Any) -> NewJob:
    """A job that does nothing."""
    args = f'{{"n":{number},"pad":"{pad}"}}'
    return NewJob(task="noop", args=args, max_attempts=MAX_ATTEMPTS, **options)


def stamp(number: int, **options: Any) -> NewJob:
    """A job that notes when it began."""
    return NewJob(task="stamp", args=f'{{"n":{number}}}', max_attempts=MAX_ATTEMPTS, **options)


def nap(task: str, ms: int) -> Make:
    """Jobs that take so many milliseconds."""
    return lambda _: NewJob(task=task, args=f'{{"ms":{ms}}}', max_attempts=MAX_ATTEMPTS)


def warm_up(_: int) -> NewJob:
    """A job that counts for nothing."""
    return NewJob(task="warm_up", args="{}", max_attempts=MAX_ATTEMPTS)


def fill(case: Case, jobs: int, make: Make = noop, what: str = "enqueue") -> float:
    """Put jobs in their queues, a thousand a call; answers jobs a second."""
    began = time.perf_counter()
    numbers = iter(range(jobs))
    done = 0
    while batch := [make(number) for number in islice(numbers, BATCH)]:
        case.app.enqueue_many(batch)
        done += len(batch)
        case.told(what, done, jobs)
    return jobs / (time.perf_counter() - began)


@dataclass(frozen=True, slots=True)
class Offered:
    """What a producer sent: the moment at which each job was meant to be sent, in nanoseconds, by number."""

    meant_at: "array[int]" = field(default_factory=lambda: array("q"))

    @property
    def jobs(self) -> int:
        return len(self.meant_at)

    def waits_ms(self, begun: list[int]) -> list[float]:
        """From each job's moment to its handler's first line.

        Counted from the planned moment: a producer held up by the queue would otherwise hide the delay.
        """
        return [(at - meant) / 1e6 for at, meant in zip(begun, self.meant_at, strict=True) if at]


def offer(case: Case, rate: int, seconds: float, make: Make = stamp, sent: Offered | None = None) -> Offered:
    """Send jobs at a fixed rate, a group each hundredth of a second, however long the last call took.

    A late producer sends all due jobs in one call. Given what was sent before, it goes on with its numbers.
    """
    sent = sent or Offered()
    first, began = sent.jobs, time.time_ns()
    total, done = round(rate * seconds), 0
    while done < total:
        tick = (time.time_ns() - began) // TICK_NS
        due = min(total, int((tick + 1) * rate * TICK_NS / 1e9), done + BATCH)
        if due > done:
            case.app.enqueue_many([make(first + number) for number in range(done, due)])
            sent.meant_at.extend(began + _tick_of(number, rate) * TICK_NS for number in range(done, due))
            done = due
            case.told("offer", done, total)
        else:
            time.sleep(max(0, began + (tick + 1) * TICK_NS - time.time_ns()) / 1e9)
    return sent


def _tick_of(number: int, rate: int) -> int:
    """The first tick at which a job of this number is due."""
    return int(number * 1e9 / (rate * TICK_NS))
