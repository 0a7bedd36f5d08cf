"""RevocationCheck: whether the client certificate of one connection was revoked, now and then again."""

import asyncio
from collections.abc import Callable
from typing import Final

from faultline.server.listener.revoked_certificates import RevokedCertificates

LOOK_EVERY_SECONDS: Final = 5.0
"""The interval between checks of an open connection's certificate against the revoked ones."""


class RevocationCheck:
    """Checked with all new bytes, and at times: a connection may be older than its revocation."""

    def __init__(
        self, revoked: RevokedCertificates, transport: asyncio.Transport, cut: Callable[[], None]
    ) -> None:
        self._revoked = revoked
        self._transport = transport
        self._cut = cut
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(LOOK_EVERY_SECONDS, self._look_again)

    def is_revoked(self) -> bool:
        speaks_tls = self._transport.get_extra_info("ssl_object")
        shown = None if speaks_tls is None else speaks_tls.getpeercert(binary_form=True)
        return shown is not None and self._revoked.lists(shown)

    def end(self) -> None:
        """Check no more."""
        self._timer.cancel()

    def _look_again(self) -> None:
        """An event stream sends us nothing while it reads: it is cut when its certificate is revoked."""
        if self.is_revoked():
            self._cut()
        else:
            self._timer = self._loop.call_later(LOOK_EVERY_SECONDS, self._look_again)
