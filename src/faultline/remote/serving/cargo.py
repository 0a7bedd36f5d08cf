"""Cargo: the bytes of claimed jobs on their way through the server, bounded for all sessions together."""

import asyncio
import time
from collections import Counter, deque
from typing import Final

CLAIM_BYTES_MAX: Final = 1_048_576
"""Arguments that one claim brings, together. The largest job alone is as much."""

AROUND_JOB_BYTES: Final = 300
"""What a job weighs beside its arguments, about."""


class Load:
    """Room that one claim has; as much as a claim may bring, then what it did bring."""

    __slots__ = ("_cargo", "bytes", "whose")

    def __init__(self, cargo: "Cargo", whose: str, bytes: int) -> None:
        self._cargo = cargo
        self.whose = whose
        self.bytes = bytes

    def shrink(self, bytes: int) -> None:
        """Give back what it does not need."""
        if bytes < self.bytes:
            self._cargo.give_back(self.whose, self.bytes - bytes)
            self.bytes = bytes

    def release(self) -> None:
        """It was written, or never will be. Once is enough."""
        self.shrink(0)

    def over(self, call: object) -> None:
        """The same, told by a call that has ended."""
        self.release()


class Cargo:
    """Lets claims be made while there is room for what they may bring: first come, first served.

    A job's arguments are held several times on their way from the database to the wire. Of the room one key
    has a part only: its workers, should they not read what they asked for, do not stop those of others.
    """

    def __init__(self, bytes_max: int, bytes_per_key: int) -> None:
        # Less would let nobody claim at all.
        self._bytes_max = max(bytes_max, CLAIM_BYTES_MAX)
        self._bytes_per_key = max(bytes_per_key, CLAIM_BYTES_MAX)
        self._held: Counter[str] = Counter()
        self._total = 0
        self._line: deque[tuple[str, asyncio.Future[None]]] = deque()

    async def room(self, whose: str, until: float) -> Load | None:
        """Room for one claim, waited for until this moment of the monotonic clock; None if there was none."""
        if self._line or not self._fits(whose):
            turn = asyncio.get_running_loop().create_future()
            self._line.append((whose, turn))
            self._call_up()
            try:
                async with asyncio.timeout(max(until - time.monotonic(), 0.0)):
                    await turn
            except BaseException as error:
                turn.cancel()
                if not turn.cancelled():  # its turn had come, and it was not there any more
                    self.give_back(whose, CLAIM_BYTES_MAX)
                if isinstance(error, TimeoutError):
                    return None
                raise
        else:
            self._take(whose)
        return Load(self, whose, CLAIM_BYTES_MAX)

    def give_back(self, whose: str, bytes: int) -> None:
        """Whoever waits may have it."""
        self._total -= bytes
        self._held[whose] -= bytes
        if not self._held[whose]:
            del self._held[whose]
        if self._line:
            self._call_up()

    def _call_up(self) -> None:
        waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        for whose, turn in self._line:
            if not turn.done() and self._fits(whose):
                self._take(whose)
                turn.set_result(None)
            elif not turn.done():
                waiting.append((whose, turn))
        self._line = waiting

    def _fits(self, whose: str) -> bool:
        return (
            self._total + CLAIM_BYTES_MAX <= self._bytes_max
            and self._held[whose] + CLAIM_BYTES_MAX <= self._bytes_per_key
        )

    def _take(self, whose: str) -> None:
        self._total += CLAIM_BYTES_MAX
        self._held[whose] += CLAIM_BYTES_MAX
