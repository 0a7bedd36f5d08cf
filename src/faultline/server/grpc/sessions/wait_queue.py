"""WaitQueue: the Asks that wait for work in each queue, and the order in which wake-ups reach them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from faultline.server.grpc.sessions.task_kinds import Kind
from faultline.server.problems import OVERLOADED, TOO_MANY, RequestRefused

POLL_SECONDS: Final = 0.25
"""The interval between polls while no wake-up can be heard."""

IDLE_POLL_SECONDS: Final = 10.0
"""The same while wake-ups are heard: the leading watchdog announces due jobs that come without one."""

NONE_TRIED: Final[frozenset[Kind]] = frozenset()

Subscriber = Callable[[str | None], None]
"""Called with each queue of a wake-up, with "" for all, with None when no wake-up can be heard now."""


class Waiter:
    """One Ask that waits for work."""

    __slots__ = ("queues", "except_tasks", "kind", "only", "tried", "woken", "news", "_over")

    def __init__(
        self, queues: Sequence[str], except_tasks: Iterable[str] = (), kind: Kind | None = None
    ) -> None:
        self.queues = tuple(dict.fromkeys(queues))
        self.except_tasks = frozenset(except_tasks)
        self.only: frozenset[str] | None = None
        """The tasks of the jobs behind the wake-up; None for any."""
        self.kind = kind
        """The tasks of its worker: other waiters of this kind find the same. None: it takes every task."""
        self.tried: frozenset[Kind] = NONE_TRIED
        """The kinds that have looked since the wake-up, and found nothing."""
        self.woken = False
        self._over = False
        self.news = asyncio.Event()

    def end(self) -> None:
        """Release it, with or without work."""
        self._over = True
        self.news.set()

    def is_over(self) -> bool:
        """Whether it was released."""
        return self._over


class WaitQueue:
    """A wake-up wakes one waiter; a waiter that found work wakes the next: no crowd runs for one job."""

    def __init__(self, queues_max: int = 2_000_000, queues_per_key: int = 200_000) -> None:
        self._queues_max = queues_max
        self._queues_per_key = queues_per_key
        self._queues_of: Counter[str] = Counter()
        """The queues of each key's Asks, counted for each Ask: each takes an entry in a line."""
        self._queues_of_all = 0
        self.listening = False
        self.subscribers: set[Subscriber] = set()
        self._present: Counter[str] = Counter()
        self._wakeups: dict[str, int] = {}
        self._lines: dict[str, dict[Waiter, None]] = {}

    @contextmanager
    def present(self, waiter: Waiter, whose: str = "") -> Iterator[None]:
        """During the block, wake-ups for its queues are counted, in its wait and in its claim."""
        with self._within_share(len(waiter.queues), whose), self._counted(waiter):
            yield

    @contextmanager
    def _within_share(self, queues: int, whose: str) -> Iterator[None]:
        """RequestRefused when its key's Asks, or all, name too many queues together."""
        if self._queues_of[whose] + queues > self._queues_per_key:
            raise RequestRefused(
                TOO_MANY,
                f"the Asks of this key name more than {self._queues_per_key:,} queues together; "
                "name fewer in each, or ask in fewer sessions",
                1,
            )
        if self._queues_of_all + queues > self._queues_max:
            raise RequestRefused(OVERLOADED, f"the Asks of all keys name {self._queues_max:,} queues", 1)
        self._queues_of[whose] += queues
        self._queues_of_all += queues
        try:
            yield
        finally:
            self._queues_of_all -= queues
            self._queues_of[whose] -= queues
            if not self._queues_of[whose]:
                del self._queues_of[whose]

    @contextmanager
    def _counted(self, waiter: Waiter) -> Iterator[None]:
        for queue in waiter.queues:
            self._present[queue] += 1
            self._wakeups.setdefault(queue, 0)
        try:
            yield
        finally:
            for queue in waiter.queues:
                self._present[queue] -= 1
                if not self._present[queue]:
                    del self._present[queue], self._wakeups[queue]

    def heard(self, waiter: Waiter) -> int:
        """A count that changes with each wake-up for its queues: one may come during the claim."""
        return sum(self._wakeups[queue] for queue in waiter.queues)

    def notified(self, queue: str | None) -> None:
        """Take in the news of LISTEN."""
        self.listening = queue is not None
        if queue is not None:
            self.wake(queue)
        for tell in list(self.subscribers):
            tell(queue)

    def wake(self, queue: str) -> None:
        """Wake a waiter of this queue; "" for any queue."""
        for name in list(self._wakeups) if not queue else (queue,):
            if name in self._wakeups:
                self._wakeups[name] += 1
                self._wake_first(name)

    def _wake_first(
        self, queue: str, only: frozenset[str] | None = None, tried: frozenset[Kind] = NONE_TRIED
    ) -> None:
        for waiter in self._lines.get(queue, ()):
            if waiter.kind not in tried and (only is None or not only <= waiter.except_tasks):
                waiter.woken = True
                waiter.only, waiter.tried = only, tried
                waiter.news.set()
                self._leave(waiter)
                return

    async def wait(self, waiter: Waiter, seconds: float) -> None:
        """Wait for a wake-up, the waiter's release, or the end of the time."""
        waiter.woken = False
        for queue in waiter.queues:
            self._lines.setdefault(queue, {})[waiter] = None
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await waiter.news.wait()
        finally:
            self._leave(waiter)
            if not waiter.is_over():
                waiter.news.clear()

    def pass_on(self, waiter: Waiter) -> None:
        """Wake the next in line: this waiter found work, or leaves with an unused wake-up."""
        for queue in waiter.queues:
            self._wake_first(queue)

    def pass_on_unused(self, waiter: Waiter) -> None:
        """Wake the next waiter that may take what this one could not: a task it excepts, or does not know.

        Each waiter in this chain excepts fewer of the remaining tasks, or is of another kind than all before
        it, so the chain ends after a few.
        """
        if not waiter.woken or not (waiter.except_tasks or waiter.kind is not None):
            return
        if waiter.kind is not None:
            only, tried = waiter.only, waiter.tried | {waiter.kind}
        else:
            only, tried = waiter.except_tasks, waiter.tried
            if waiter.only is not None:
                only &= waiter.only
        if only is None or only:
            for queue in waiter.queues:
                self._wake_first(queue, only, tried)

    def _leave(self, waiter: Waiter) -> None:
        for queue in waiter.queues:
            line = self._lines.get(queue)
            if line is not None:
                line.pop(waiter, None)
                if not line:
                    del self._lines[queue]

    async def poll(self) -> None:
        """Let the first of each line poll now and then, until cancelled: the floor under all wake-ups."""
        since = 0.0
        while True:
            await asyncio.sleep(POLL_SECONDS)
            since += POLL_SECONDS
            if not self.listening or since >= IDLE_POLL_SECONDS:
                since = 0.0
                for queue in list(self._lines):
                    self._wake_first(queue)
