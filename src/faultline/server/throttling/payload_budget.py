"""PayloadBudget: a bound on the bytes of jobs on their way, in sessions and in answers."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

CLAIM_BYTES_MAX: Final = 1_048_576
"""The bound on the arguments of one claim. The largest job alone is as much."""

AROUND_JOB_BYTES: Final = 300
"""The approximate size of a job beside its arguments."""

READ_SECONDS_MIN: Final = 5.0
READ_SECONDS_MAX: Final = 30.0


def patience(lease_seconds: float) -> float:
    """The bound on reading assigned jobs: their leases run, and their bytes take room that others need."""
    return min(max(lease_seconds, READ_SECONDS_MIN), READ_SECONDS_MAX)


class PayloadShare:
    """The room of one claim: first the most that a claim may bring, then what it did bring."""

    __slots__ = ("_budget", "begun", "bytes", "limit", "whose")

    def __init__(self, budget: "PayloadBudget", whose: str, bytes: int) -> None:
        self._budget = budget
        self.whose = whose
        self.bytes = bytes
        self.begun = 0.0
        self.limit: asyncio.Timeout | None = None
        """The time of the write by the loop's clock: its begin, and its latest end."""

    @asynccontextmanager
    async def being_written(self, seconds: float) -> AsyncIterator[None]:
        """TimeoutError if the block takes longer; or READ_SECONDS_MIN, while another key waits for room."""
        async with asyncio.timeout(seconds) as self.limit:
            self.begun = asyncio.get_running_loop().time()
            self._budget.writing(self)
            try:
                yield
            finally:
                self._budget.written(self)

    def hurry(self) -> None:
        """Its key uses more room than another key that waits."""
        until = self.begun + READ_SECONDS_MIN
        if self.limit is not None and not self.limit.expired() and (self.limit.when() or until) > until:
            self.limit.reschedule(until)

    def shrink(self, bytes: int) -> None:
        """Give back the unused part."""
        if bytes < self.bytes:
            self._budget.give_back(self.whose, self.bytes - bytes)
            self.bytes = bytes

    def release(self) -> None:
        """The bytes were written, or never will be. Repeated calls do nothing."""
        self.shrink(0)


class PayloadBudget:
    """Admits claims while there is room for their bytes: the key that uses least is next.

    A job's arguments are held several times between the database and the wire. One key gets a part of the
    room only, and no more than it leaves free: a few keys whose workers do not read their jobs do not stop
    the others. Where many such keys fill the room together, each has READ_SECONDS_MIN.
    """

    def __init__(self, bytes_max: int, bytes_per_key: int) -> None:
        # With less room no claim would ever fit.
        self._bytes_max = max(bytes_max, CLAIM_BYTES_MAX)
        self._bytes_per_key = max(bytes_per_key, CLAIM_BYTES_MAX)
        self._held: Counter[str] = Counter()
        self._total = 0
        self._line: dict[str, deque[asyncio.Future[None]]] = {}
        """The waiting claims, by key; a key that had its turn goes to the end."""
        self._writing: set[PayloadShare] = set()

    async def room(self, whose: str, until: float) -> PayloadShare | None:
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
                if not turn.cancelled():  # the turn was given, and its waiter had gone
                    self.give_back(whose, CLAIM_BYTES_MAX)
                if isinstance(error, TimeoutError):
                    return None
                raise
        else:
            self._take(whose)
        return PayloadShare(self, whose, CLAIM_BYTES_MAX)

    def give_back(self, whose: str, bytes: int) -> None:
        """Give free room to waiting claims."""
        self._total -= bytes
        self._held[whose] -= bytes
        if not self._held[whose]:
            del self._held[whose]
        if self._line:
            self._call_up()

    def writing(self, load: PayloadShare) -> None:
        """Count the bytes of a claim as on their way."""
        self._writing.add(load)
        if self._line:
            self._hurry()

    def written(self, load: PayloadShare) -> None:
        """Stop counting the bytes of a claim."""
        self._writing.discard(load)

    def _hurry(self) -> None:
        """Shorten the writes of keys that use more room than a waiting key."""
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
        """The key that uses least, of those that wait and fit."""
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
            and (not held or held + CLAIM_BYTES_MAX <= free)  # the rest is for other keys
        )

    def _take(self, whose: str) -> None:
        self._total += CLAIM_BYTES_MAX
        self._held[whose] += CLAIM_BYTES_MAX
