"""SharedAnswers: one answer of the database for all requests of the same moment."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from faultline.store.connection_turns import on_behalf_of_server

T = TypeVar("T")

Queues = frozenset[str] | None

SETS_MAX: Final = 200
"""How many sets of queues are remembered; with more, all are forgotten and asked for again."""


class SharedAnswer(Generic[T]):
    """Asks at most one question at a time, and not again while the last answer is fresh.

    A client that comes while a question is under way shares the next one: its answer is never older than its
    own question, unless it is fresh enough by `fresh_seconds`. So 150 clients cost two questions, not 150.
    """

    def __init__(
        self, ask: Callable[[], Awaitable[T]], fresh_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._ask = ask
        self._fresh_seconds = fresh_seconds
        self._clock = clock
        self._last: tuple[float, T] | None = None
        self._under_way: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """The answer; an error is raised to each caller that shares it."""
        if self._last is not None and self._clock() - self._last[0] < self._fresh_seconds:
            return self._last[1]
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._under_way), context=on_behalf_of_server())
            self._next.add_done_callback(_heard)
        return await asyncio.shield(self._next)  # a caller that leaves does not end it for the others

    async def _after(self, before: "asyncio.Task[T] | None") -> T:
        if before is not None and not before.done():
            await asyncio.wait([before])
            if self._last is not None and self._clock() - self._last[0] < self._fresh_seconds:
                self._next = None
                return self._last[1]
        self._under_way, self._next = asyncio.current_task(), None
        asked_at = self._clock()
        answer = await self._ask()
        self._last = (asked_at, answer) if self._fresh_seconds else None
        return answer


class SharedAnswers(Generic[T]):
    """One `SharedAnswer` for each set of queues that keys are for; None stands for all queues."""

    def __init__(self, ask: Callable[[Queues], Awaitable[T]], fresh_seconds: float = 0.0) -> None:
        self._ask = ask
        self._fresh_seconds = fresh_seconds
        self._by_queues: dict[Queues, SharedAnswer[T]] = {}

    def of(self, queues: Queues) -> SharedAnswer[T]:
        if queues not in self._by_queues:
            if len(self._by_queues) >= SETS_MAX:
                self._by_queues.clear()
            self._by_queues[queues] = SharedAnswer(lambda: self._ask(queues), self._fresh_seconds)
        return self._by_queues[queues]


def _heard(task: "asyncio.Task[T]") -> None:
    if not task.cancelled():
        task.exception()  # all callers may have left
