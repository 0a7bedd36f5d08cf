"""The bell: who waits for work in which queue, and whom a wake-up lets look first."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

POLL_SECONDS: Final = 0.25
"""How often somebody looks while no wake-up can be heard."""

IDLE_POLL_SECONDS: Final = 10.0
"""The same while wake-ups are heard: what comes without one is announced by the leading watchdog."""

Subscriber = Callable[[str | None], None]
"""Called with each queue that rings, with "" for all, with None when nothing can be heard now."""


class Waiter:
    """One Ask that waits for work."""

    __slots__ = ("queues", "except_tasks", "only", "rung", "news", "_over")

    def __init__(self, queues: Sequence[str], except_tasks: Iterable[str] = ()) -> None:
        self.queues = tuple(dict.fromkeys(queues))
        self.except_tasks = frozenset(except_tasks)
        self.only: frozenset[str] | None = None
        """Of which tasks the jobs can be that it was rung for; None for any."""
        self.rung = False
        self._over = False
        self.news = asyncio.Event()

    def end(self) -> None:
        """Let it go, with whatever it has."""
        self._over = True
        self.news.set()

    def is_over(self) -> bool:
        """Whether it was let go."""
        return self._over


class Bell:
    """A ring wakes one who waits, and who found work rings for the next: a crowd never runs for one job."""

    def __init__(self) -> None:
        self.listening = False
        self.subscribers: set[Subscriber] = set()
        self._present: Counter[str] = Counter()
        self._rings: dict[str, int] = {}
        self._lines: dict[str, dict[Waiter, None]] = {}

    @contextmanager
    def present(self, waiter: Waiter) -> Iterator[None]:
        """While the block runs, rings for its queues are counted, whether it waits or looks."""
        for queue in waiter.queues:
            self._present[queue] += 1
            self._rings.setdefault(queue, 0)
        try:
            yield
        finally:
            for queue in waiter.queues:
                self._present[queue] -= 1
                if not self._present[queue]:
                    del self._present[queue], self._rings[queue]

    def heard(self, waiter: Waiter) -> int:
        """A count that changes with each ring for its queues: one may come while it looks."""
        return sum(self._rings[queue] for queue in waiter.queues)

    def news(self, queue: str | None) -> None:
        """What LISTEN heard."""
        self.listening = queue is not None
        if queue is not None:
            self.ring(queue)
        for tell in list(self.subscribers):
            tell(queue)

    def ring(self, queue: str) -> None:
        """There may be work in this queue; "" for any of them."""
        for name in list(self._rings) if not queue else (queue,):
            if name in self._rings:
                self._rings[name] += 1
                self._wake_first(name)

    def _wake_first(self, queue: str, only: frozenset[str] | None = None) -> None:
        for waiter in self._lines.get(queue, ()):
            if only is None or not only <= waiter.except_tasks:
                waiter.rung = True
                waiter.only = only
                waiter.news.set()
                self._leave(waiter)
                return

    async def wait(self, waiter: Waiter, seconds: float) -> None:
        """Until it rings, the waiter is let go, or the time is over."""
        waiter.rung = False
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
        """Who found work, or leaves with a ring unused, lets the next in line look."""
        for queue in waiter.queues:
            self._wake_first(queue)

    def pass_on_excepted(self, waiter: Waiter) -> None:
        """Who found nothing but excepts tasks lets the next look that takes one of them.

        Each who is woken so excepts fewer of those that are left, so it ends after a few.
        """
        if waiter.rung and waiter.except_tasks:
            left = waiter.except_tasks if waiter.only is None else waiter.only & waiter.except_tasks
            for queue in waiter.queues if left else ():
                self._wake_first(queue, left)

    def _leave(self, waiter: Waiter) -> None:
        for queue in waiter.queues:
            line = self._lines.get(queue)
            if line is not None:
                line.pop(waiter, None)
                if not line:
                    del self._lines[queue]

    async def poll(self) -> None:
        """Let the first in each line look now and then, until cancelled: the floor under all wake-ups."""
        since = 0.0
        while True:
            await asyncio.sleep(POLL_SECONDS)
            since += POLL_SECONDS
            if not self.listening or since >= IDLE_POLL_SECONDS:
                since = 0.0
                for queue in list(self._lines):
                    self._wake_first(queue)
