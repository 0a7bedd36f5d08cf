"""Listening: sockets bound by us, so that a port that is taken is said in one line; uvicorn behind them."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any, Final

import uvicorn

from faultline.errors import ConfigError
from faultline.server.config import Address
from faultline.server.limits import Limits
from faultline.server.protocol import uvicorn_config
from faultline.server.revoked import Revoked

BACKLOG: Final = 512


def bind(address: Address) -> socket.socket:
    """A socket on this address, or ConfigError with the reason."""
    try:
        (family, kind, proto, _, where), *_ = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sock = socket.socket(family, kind, proto)
    except OSError as error:
        raise ConfigError(f"cannot listen on {address}: {error.strerror or error}") from None
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
        sock.listen(BACKLOG)  # from here on nobody is turned away: they wait until we serve
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise ConfigError(
            f"cannot listen on {address}: {error.strerror or error}; choose another port"
        ) from None
    return sock


class HttpServer(uvicorn.Server):
    """uvicorn without its signals, with our TLS and a bound on how long a handshake may take."""

    def __init__(
        self,
        app: Any,
        limits: Limits,
        grace_seconds: float,
        tls: ssl.SSLContext | None = None,
        revoked: Revoked | None = None,
    ) -> None:
        super().__init__(uvicorn_config(app, limits, grace_seconds, revoked))
        self._tls = tls
        self._limits = limits

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        loop = asyncio.get_running_loop()
        bounded = {"ssl_handshake_timeout": self._limits.handshake_seconds_max} if self._tls else {}
        self.servers = [
            await loop.create_server(self._protocol, sock=sock, ssl=self._tls, backlog=BACKLOG, **bounded)  # type: ignore[call-overload]
            for sock in sockets or []
        ]
        self.started = True

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(config=self.config, server_state=self.server_state, app_state={})
        return protocol
