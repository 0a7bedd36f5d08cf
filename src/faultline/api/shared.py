"""Shared: one answer of the database for all who ask the same at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from faultline.store.turns import for_everybody

T = TypeVar("T")


class Shared(Generic[T]):
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
        """The answer; what went wrong with it is raised to each who shares it."""
        if self._last is not None and self._clock() - self._last[0] < self._fresh_seconds:
            return self._last[1]
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._under_way), context=for_everybody())
            self._next.add_done_callback(_heard)
        return await asyncio.shield(self._next)  # one who leaves does not end it for the others

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


def _heard(task: "asyncio.Task[T]") -> None:
    if not task.cancelled():
        task.exception()  # all who asked may have left
