"""The lines of one app: two for plain code, and two for each event loop."""

import asyncio
import os
import weakref
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from faultline.client.gathering.async_line import AsyncLine
from faultline.client.gathering.batches import Answer, gathers
from faultline.client.gathering.thread_line import ThreadLine
from faultline.job import NewJob

Carry = Callable[[list[NewJob]], list[Answer]]
AsyncCarry = Callable[[list[NewJob]], Awaitable[list[Answer]]]


class _PlainLines(NamedTuple):
    keyed: ThreadLine
    others: ThreadLine


class _LoopLines(NamedTuple):
    keyed: AsyncLine
    others: AsyncLine


class AppLines:
    """Finds the line for a job in the calling thread or loop; makes it when it is first needed.

    Jobs with a key have a line of their own: an open transaction may hold a key, and only they wait for it.
    """

    def __init__(self, carry: Carry, acarry: AsyncCarry) -> None:
        self._carry = carry
        self._acarry = acarry
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._plain = _PlainLines(ThreadLine(self._carry), ThreadLine(self._carry))
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopLines] = (
            weakref.WeakKeyDictionary()
        )

    def plain(self, new: NewJob) -> ThreadLine | None:
        """The line of plain code; None for a job that goes by itself."""
        if not gathers(new):
            return None
        self._leave_the_parents()
        return self._plain.others if new.key is None else self._plain.keyed

    def of_this_loop(self, new: NewJob) -> AsyncLine | None:
        """The line of the running event loop; None for a job that goes by itself."""
        if not gathers(new):
            return None
        self._leave_the_parents()
        loop = asyncio.get_running_loop()
        lines = self._by_loop.get(loop)
        if lines is None:
            lines = self._by_loop[loop] = _LoopLines(AsyncLine(self._acarry), AsyncLine(self._acarry))
        return lines.others if new.key is None else lines.keyed

    def _leave_the_parents(self) -> None:
        # After a fork the calls under way are the parent's, and no thread of it is here.
        if self._pid != os.getpid():
            self._forget()

    def drain(self) -> None:
        """Wait until the jobs that wait in the lines of plain code are answered."""
        if self._pid == os.getpid():
            for line in self._plain:
                line.drain()

    async def adrain(self) -> None:
        """Wait until the jobs that wait in the lines of this loop, and of plain code, are answered."""
        if self._pid == os.getpid() and any(line.has_waiting for line in self._plain):
            await asyncio.to_thread(self.drain)
        for line in self._by_loop.get(asyncio.get_running_loop(), ()):
            await line.drain()
