"""What a worker does while its database is away: wait, with jitter, and say so seldom."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from faultline.store.session import OUTAGE
from faultline.worker.call_errors import can_be_mended, told

log = logging.getLogger("faultline.worker")
T = TypeVar("T")

PAUSE_FIRST = 0.05
PAUSE_MAX = 2.0
SAID_EVERY = 5.0
LATE_NEWS = 0.5
"""Seconds; the end of an outage that is told later than this is told with its age."""


class Outage:
    """Shared by all parts of one worker, so that it speaks once in five seconds, not each of its parts."""

    def __init__(self, lease: float, peer_name: str = "the database") -> None:
        self._peer_name = peer_name
        self._pause_max = min(PAUSE_MAX, lease / 3)
        self._pause = PAUSE_FIRST
        self._said_at = -SAID_EVERY
        self._owes_news: asyncio.TimerHandle | None = None
        self._told = False
        self._told_since = 0.0
        self.since: float | None = None

    def pause(self) -> float:
        """How long to wait before the next try: longer each time, never over a third of a lease."""
        self._pause = min(self._pause * 2, self._pause_max)
        return self._pause * random.uniform(0.5, 1.0)

    def met(self, trouble: Exception) -> None:
        """An outage, or a refusal that others can mend."""
        if self.since is None:
            self.since = time.monotonic()
            if self._owes_news is None:
                self._told_since = self.since
            self._drop_late_news()  # a late failure belongs to the outage whose end was not told yet
        if isinstance(trouble, OUTAGE):
            said = self.tell(
                "%s is away, jobs in hand are kept and tried again: %s", self._peer_name, trouble
            )
        else:
            said = self.tell(
                "%s refuses a call of this worker, jobs in hand are kept and tried again: %s",
                self._peer_name, told(trouble),
            )  # fmt: skip
        self._told |= said

    def tell(self, text: str, *facts: object) -> bool:
        """A line that outages bring, if none was said in the last five seconds."""
        now = time.monotonic()
        if now - self._said_at < SAID_EVERY:
            return False
        self._said_at = now
        log.warning(text, *facts)
        return True

    def over(self) -> None:
        if self.since is None:
            return
        now = time.monotonic()
        lasted, self.since, self._pause = now - self._told_since, None, PAUSE_FIRST
        if self._told and self._owes_news is None:
            # Said when its turn has come, and once: a link that flaps is not worth a line a flap.
            wait = max(0.0, self._said_at + SAID_EVERY - now)
            self._owes_news = asyncio.get_running_loop().call_later(wait, self._say_over, lasted, now)

    def _say_over(self, lasted: float, ended_at: float) -> None:
        self._owes_news, self._told, self._said_at = None, False, time.monotonic()
        ago = self._said_at - ended_at
        late = f", since {ago:.1f} s ago" if ago >= LATE_NEWS else ""
        log.info("%s is back after %.1f s%s", self._peer_name, lasted, late)

    def _drop_late_news(self) -> None:
        if self._owes_news is not None:
            self._owes_news.cancel()
            self._owes_news = None

    async def outlast(self, work: Callable[[], Awaitable[T]], *, refusals: bool = False) -> T:
        """Do `work`, again and again until the database lets it be done.

        With `refusals` also through errors that an operator has to mend: rights that were revoked, a server
        that takes no writes. A worker that has begun outlives them; one that begins says them and ends.
        """
        while True:
            try:
                result = await work()
                self.over()
                return result
            except Exception as trouble:
                if not (isinstance(trouble, OUTAGE) or (refusals and can_be_mended(trouble))):
                    raise
                self.met(trouble)
                await asyncio.sleep(self.pause())
