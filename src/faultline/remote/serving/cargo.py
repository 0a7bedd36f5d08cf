"""Cargo: the bytes of claimed jobs on their way through the server, bounded for all sessions together."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

CLAIM_BYTES_MAX: Final = 1_048_576
"""Arguments that one claim brings, together. The largest job alone is as much."""

AROUND_JOB_BYTES: Final = 300
"""What a job weighs beside its arguments, about."""

READ_SECONDS_MIN: Final = 5.0
READ_SECONDS_MAX: Final = 30.0


def patience(lease_seconds: float) -> float:
    """Seconds in which jobs have to be read: their leases run, and they take room that others want."""
    return min(max(lease_seconds, READ_SECONDS_MIN), READ_SECONDS_MAX)


class Load:
    """Room that one claim has; as much as a claim may bring, then what it did bring."""

    __slots__ = ("_cargo", "begun", "bytes", "limit", "whose")

    def __init__(self, cargo: "Cargo", whose: str, bytes: int) -> None:
        self._cargo = cargo
        self.whose = whose
        self.bytes = bytes
        self.begun = 0.0
        self.limit: asyncio.Timeout | None = None
        """While it is being written, by the loop's clock: since when, and until when it may take."""

    @asynccontextmanager
    async def being_written(self, seconds: float) -> AsyncIterator[None]:
        """TimeoutError if the block takes longer; or READ_SECONDS_MIN, while another key waits for room."""
        async with asyncio.timeout(seconds) as self.limit:
            self.begun = asyncio.get_running_loop().time()
            self._cargo.writing(self)
            try:
                yield
            finally:
                self._cargo.written(self)

    def hurry(self) -> None:
        """Its key has more on its way than another that waits."""
        until = self.begun + READ_SECONDS_MIN
        if self.limit is not None and not self.limit.expired() and (self.limit.when() or until) > until:
            self.limit.reschedule(until)

    def shrink(self, bytes: int) -> None:
        """Give back what it does not need."""
        if bytes < self.bytes:
            self._cargo.give_back(self.whose, self.bytes - bytes)
            self.bytes = bytes

    def release(self) -> None:
        """It was written, or never will be. Once is enough."""
        self.shrink(0)


class Cargo:
    """Lets claims be made while there is room for what they may bring: the key that has least is next.

    A job's arguments are held several times on their way from the database to the wire. Of the room one key
    has a part only, and no more than it leaves free: a few keys whose workers do not read what they asked for
    do not stop those of others. Where many keys together do, each has READ_SECONDS_MIN.
    """

    def __init__(self, bytes_max: int, bytes_per_key: int) -> None:
        # Less would let nobody claim at all.
        self._bytes_max = max(bytes_max, CLAIM_BYTES_MAX)
        self._bytes_per_key = max(bytes_per_key, CLAIM_BYTES_MAX)
        self._held: Counter[str] = Counter()
        self._total = 0
        self._line: dict[str, deque[asyncio.Future[None]]] = {}
        """Those who wait, by their key; the key that had its turn goes to the end."""
        self._writing: set[Load] = set()

    async def room(self, whose: str, until: float) -> Load | None:
        """Room for one claim, waited for until this moment of the monotonic clock; None if there was none."""
        if self._line or not self._fits(whose):
            turn = asyncio.get_running_loop().create_future()
            self._line.setdefault(whose, deque()).append(turn)
            self._call_up()
            self._hurry()
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

    def writing(self, load: Load) -> None:
        """It is on its way to its worker from now on."""
        self._writing.add(load)
        if self._line:
            self._hurry()

    def written(self, load: Load) -> None:
        """It is no longer."""
        self._writing.discard(load)

    def _hurry(self) -> None:
        """Let nobody who has more than one that waits take its time."""
        if self._line:
            least = min(self._held[whose] for whose in self._line)
            for load in self._writing:
                if self._held[load.whose] > least:
                    load.hurry()

    def _call_up(self) -> None:
        while (whose := self._next()) is not None:
            turns = self._line.pop(whose)
            self._take(whose)
            turns.popleft().set_result(None)
            if turns:
                self._line[whose] = turns

    def _next(self) -> str | None:
        """The key that has least on its way, of those that wait and fit."""
        for whose, turns in list(self._line.items()):
            while turns and turns[0].done():
                turns.popleft()
            if not turns:
                del self._line[whose]
        return min(filter(self._fits, self._line), key=self._held.__getitem__, default=None)

    def _fits(self, whose: str) -> bool:
        held, free = self._held[whose], self._bytes_max - self._total - CLAIM_BYTES_MAX
        return (
            free >= 0
            and self._held[whose] + CLAIM_BYTES_MAX <= self._bytes_per_key
            and (not held or held + CLAIM_BYTES_MAX <= free)  # what is left is for others
        )

    def _take(self, whose: str) -> None:
        self._total += CLAIM_BYTES_MAX
        self._held[whose] += CLAIM_BYTES_MAX
