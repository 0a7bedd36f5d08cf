"""HeadBounds: the size and the time of a request's head, and of trailers."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from faultline.server.limits import Limits

BESIDE_HEADER: Final = len(": \r\n")
"""The counted bytes of a header beside its name and its value."""


class HeadBounds:
    """Counts the bytes of one connection that are neither a whole head nor part of a body."""

    def __init__(self, limits: Limits, loop: asyncio.AbstractEventLoop, late: Callable[[], None]) -> None:
        self._limits = limits
        self._loop = loop
        self._late = late
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._behind_body = 0

    def expect(self) -> None:
        """Bound the time from here until a whole head is there."""
        self._timer = self._loop.call_later(self._limits.head_seconds_max, self._is_late)

    def arrived(self) -> None:
        """A whole head is there, or none is expected any more."""
        self._head_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def count_behind_body(self, size: int, *, progress: bool) -> None:
        """Count bytes behind a body, until there is progress: a next request, an end, or more of a body."""
        if progress:
            self._behind_body = 0
        else:
            self._behind_body += size

    @property
    def too_much_behind_body(self) -> bool:
        """Whether trailers, or the head of a next request, are past the bound."""
        return self._behind_body > self._limits.head_bytes_max

    def grows_too_large(self, size: int) -> bool:
        """Count bytes of a head; True past the bound."""
        self._head_bytes += size
        if self._head_bytes > self._limits.head_bytes_max:
            return True
        if self._timer is None:
            self.expect()
        return False

    def is_too_heavy(self, url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a whole head is past the bound."""
        weight = len(url) + sum(len(name) + len(value) + BESIDE_HEADER for name, value in headers)
        return weight > self._limits.head_bytes_max

    def _is_late(self) -> None:
        self._timer = None
        self._late()
