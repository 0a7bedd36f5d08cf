"""Accepting with TLS: a connection counts from its arrival, and not only after its handshake.

Python's own server shows a connection after its handshake. Until then no bound would apply to it: one
address without any key could have thousands of them, up to the files that a process may open.
"""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from faultline.server.limits import Limits
from faultline.server.listener.address_limits import AddressAllowance, plain

log = logging.getLogger("faultline.server")

NO_FILES_PAUSE_SECONDS: Final = 0.5
"""The pause after a failed accept, for want of open files for instance."""


class Handshakes:
    """Handshakes under way. Past the bound the oldest makes room: an honest one is over in a moment."""

    def __init__(
        self,
        limits: Limits,
        allowance: AddressAllowance,
        of_address: Counter[str],
        connections: Callable[[], int],
    ) -> None:
        self._limits = limits
        self._allowance = allowance
        self._of_address = of_address
        self._connections = connections
        self._under_way: dict[asyncio.Task[None], str] = {}  # oldest first
        self._counts: Counter[str] = Counter()

    def begin(self, address: str, task: asyncio.Task[None]) -> None:
        """Count it until it ends, and make room for it."""
        self._under_way[task] = address
        self._counts[address] += 1
        task.add_done_callback(self._end)
        most = self._allowance.of(address)
        if most is not None and self._counts[address] + self._of_address[address] > most:
            self._push_out(address)
        elif len(self._under_way) + self._connections() > self._limits.connections_max:
            self._push_out(None)

    def _end(self, task: asyncio.Task[None]) -> None:
        if (address := self._under_way.pop(task, None)) is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def _push_out(self, address: str | None) -> None:
        for task, of in self._under_way.items():
            if address is None or of == address:
                self._end(task)
                task.cancel()
                return


class TlsListener:
    """Accepts connections from a socket, like the server that `loop.create_server` makes."""

    def __init__(
        self,
        sock: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext,
        handshakes: Handshakes,
        seconds_max: float,
    ) -> None:
        self._sock = sock
        self._protocol = protocol
        self._context = context
        self._handshakes = handshakes
        self._seconds_max = seconds_max
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        """Accept no more; handshakes under way come to their end."""
        self._accepting.cancel()

    async def wait_closed(self) -> None:
        with suppress(asyncio.CancelledError):
            await self._accepting

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        with self._sock as sock:
            while True:
                try:
                    conn, where = await loop.sock_accept(sock)
                except OSError as error:
                    log.warning("a connection could not be taken: %s", error)
                    await asyncio.sleep(NO_FILES_PAUSE_SECONDS)
                    continue
                task = asyncio.create_task(self._shake_hands(conn))
                task.add_done_callback(partial(_close_unbegun, conn))
                self._handshakes.begin(_host(where), task)

    async def _shake_hands(self, conn: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                self._protocol, conn, ssl=self._context, ssl_handshake_timeout=self._seconds_max
            )
        except (OSError, asyncio.CancelledError):  # no TLS, too slow, gone, or pushed out
            conn.close()


def _close_unbegun(conn: socket.socket, task: asyncio.Task[None]) -> None:
    """A handshake that was ended before it ran had no chance to close its socket."""
    if task.cancelled():
        conn.close()


def _host(where: Any) -> str:
    return plain(where[0]) if isinstance(where, tuple) and where else ""
