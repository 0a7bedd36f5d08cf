"""Wrong keys: refused logins are counted, logged, and slowed down past a rate.

A key is checked before its address: other traffic from an address never refuses a valid key, for
instance through a proxy with many clients.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from faultline.server.auth.api_keys import id_of
from faultline.server.throttling.token_bucket import TokenBucket
from faultline.telemetry import printable

log = logging.getLogger("faultline.server")

PAUSE_SECONDS: Final = 1.0
"""The delay of a refusal to an address past its rate."""

PAUSES_MAX: Final = 500
"""Delayed refusals at the same time; past it a refusal comes at once, since waiting costs memory."""

TELL_EVERY_SECONDS: Final = 60.0
LINES_PER_SECOND: Final = 1.0
ADDRESSES_MAX: Final = 1_000
GONE: Final = "an address that is gone"
"""The address of a connection that was reset: it tells none any more."""


class WrongKeys:
    """Failed logins by address, over all APIs of the server.

    >>> wrong = WrongKeys(5.0)
    >>> asyncio.run(wrong.are_too_many("HTTP", "192.0.2.1", "nonsense"))
    False
    """

    def __init__(
        self, per_second: float, clock: Callable[[], float] = time.monotonic, pause: float = PAUSE_SECONDS
    ) -> None:
        self.count = 0
        self._clock = clock
        self._rate = TokenBucket(per_second, clock)
        self._lines = TokenBucket(LINES_PER_SECOND, clock)
        self._untold: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._pause = pause
        self._pauses = 0

    async def are_too_many(self, api: str, address: str, key: str) -> bool:
        """Count a wrong key; True, after a pause, when its address sends too many of them."""
        self.count += 1
        self._tell(api, address, key)
        if self._rate.take(address):
            return False
        if self._pauses < PAUSES_MAX:
            self._pauses += 1
            try:
                await asyncio.sleep(self._pause)
            finally:
                self._pauses -= 1
        return True

    def _tell(self, api: str, address: str, key: str) -> None:
        """One line a minute for an address, and one a second in all."""
        untold, told_at = self._untold.get(address, (0, float("-inf")))
        due = self._clock() - told_at >= TELL_EVERY_SECONDS and self._lines.take("")
        self._untold[address] = (0, self._clock()) if due else (untold + 1, told_at)
        self._untold.move_to_end(address)
        if len(self._untold) > ADDRESSES_MAX:
            self._untold.popitem(last=False)
        if due:
            log.warning(
                "%s: an API key that opens nothing was refused, from %s (%s); %d more from there untold",
                api, printable(address[:100]) or GONE, _named(key), untold,
            )  # fmt: skip


def _named(key: str) -> str:
    """The part of a key that may be logged: its id, which `faultline keys list` shows, without the secret."""
    id = id_of(key)
    return "not in the form of a key" if id is None else f"key id {id}"
