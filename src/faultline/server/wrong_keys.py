"""Wrong keys: refused logins are counted, told in the log, and slowed down past a rate.

A key is looked at before its address is: a good key is never kept out by what else comes from there, such
as through a proxy that stands before many clients.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from faultline.access.keys import id_of
from faultline.server.rates import Rate
from faultline.telemetry import printable

log = logging.getLogger("faultline.server")

PAUSE_SECONDS: Final = 1.0
"""How much later a refusal comes to an address past its rate."""

PAUSES_MAX: Final = 500
"""How many wait so at once; past it a refusal comes at once, since waiting costs memory."""

TELL_EVERY_SECONDS: Final = 60.0
LINES_PER_SECOND: Final = 1.0
ADDRESSES_MAX: Final = 1_000
GONE: Final = "an address that is gone"
"""A connection that was reset at once tells none any more."""


class WrongKeys:
    """Failed logins by address.

    >>> wrong = WrongKeys(5.0, "HTTP")
    >>> asyncio.run(wrong.are_too_many("192.0.2.1", "nonsense"))
    False
    """

    def __init__(
        self, per_second: float, door: str, clock: Callable[[], float] = time.monotonic,
        pause: float = PAUSE_SECONDS,
    ) -> None:  # fmt: skip
        self.count = 0
        self._door = door
        self._clock = clock
        self._rate = Rate(per_second, clock)
        self._lines = Rate(LINES_PER_SECOND, clock)
        self._untold: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._pause = pause
        self._pauses = 0

    async def are_too_many(self, address: str, key: str) -> bool:
        """Note a key that opened nothing; True, after a pause, when its address sends too many of them."""
        self.count += 1
        self._tell(address, key)
        if self._rate.take(address):
            return False
        if self._pauses < PAUSES_MAX:
            self._pauses += 1
            try:
                await asyncio.sleep(self._pause)
            finally:
                self._pauses -= 1
        return True

    def _tell(self, address: str, key: str) -> None:
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
                self._door, printable(address[:100]) or GONE, _named(key), untold,
            )  # fmt: skip


def _named(key: str) -> str:
    """What a log may say of a key: its id, which `faultline keys list` shows and which opens nothing."""
    id = id_of(key)
    return "not in the form of a key" if id is None else f"key id {id}"
