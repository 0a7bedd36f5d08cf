"""Sockets bound by us, so that a port in use is reported in one line; uvicorn serves them."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any, Final

import uvicorn

from faultline.errors import ConfigError
from faultline.server.config import ListenAddress
from faultline.server.http.connection.connection_places import ConnectionPlaces
from faultline.server.http.connection.http_protocol import BoundedProtocol
from faultline.server.limits import Limits
from faultline.server.listener.address_limits import AddressAllowance
from faultline.server.listener.revoked_certificates import RevokedCertificates
from faultline.server.listener.tls import Certificates
from faultline.server.listener.tls_handshakes import Handshakes, TlsListener
from faultline.server.traffic_stats import TrafficStats

log = logging.getLogger("faultline.server")

BACKLOG: Final = 512
RENEW_EVERY_SECONDS: Final = 2.0
"""The interval between checks of the TLS files."""


def bind(address: ListenAddress) -> socket.socket:
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
        sock.listen(BACKLOG)  # from here on connections are accepted: they wait until we serve
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise ConfigError(
            f"cannot listen on {address}: {error.strerror or error}; choose another port"
        ) from None
    return sock


class HttpServer(uvicorn.Server):
    """uvicorn without its signals, with our TLS and a bound on the time of a handshake."""

    def __init__(
        self,
        app: Any,
        limits: Limits,
        grace_seconds: float,
        tls: Certificates | None = None,
        revoked: RevokedCertificates | None = None,
        allowance: AddressAllowance | None = None,
        traffic: TrafficStats | None = None,
    ) -> None:
        allowance = allowance or AddressAllowance(limits.connections_per_address)
        places = ConnectionPlaces(limits, allowance)
        own = {"limits": limits, "revoked": revoked, "places": places, "traffic": traffic}
        super().__init__(
            uvicorn_config(app, type("HttpProtocol", (BoundedProtocol,), own), limits, grace_seconds)
        )
        if traffic is not None:
            traffic.connections = lambda: len(self.server_state.connections)
        self._tls = tls
        self._limits = limits
        self._handshakes = Handshakes(
            limits, allowance, places.of_address, lambda: len(self.server_state.connections)
        )
        self._sockets: list[socket.socket] = []
        self._renewing: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self._sockets = list(sockets or [])
        await self._accept()
        if self._tls is not None:
            self._renewing = asyncio.create_task(self._renew(self._tls))
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
        await super().shutdown(sockets)

    async def _accept(self) -> None:
        """Accept connections, with the present certificates; open connections keep theirs.

        Each time on a copy of the socket: a waiting connection is in the queue of both, and none is lost.
        """
        loop, before = asyncio.get_running_loop(), self.servers if self.started else []
        self.servers = []
        for sock in self._sockets:
            if self._tls is None:
                server = await loop.create_server(self._protocol, sock=sock.dup(), backlog=BACKLOG)
            else:
                server = self._tls_listener(sock, self._tls)
            self.servers.append(server)
        for server in before:
            server.close()

    def _tls_listener(self, sock: socket.socket, tls: Certificates) -> Any:
        copy = sock.dup()
        copy.setblocking(False)
        return TlsListener(
            copy, self._protocol, tls.context, self._handshakes, self._limits.handshake_seconds_max
        )

    async def _renew(self, tls: Certificates) -> None:
        while True:
            await asyncio.sleep(RENEW_EVERY_SECONDS)
            try:
                if tls.renewed():
                    await self._accept()
            except Exception:
                log.exception("taking connections with the new certificate failed; the last one stays")

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(config=self.config, server_state=self.server_state, app_state={})
        return protocol


def uvicorn_config(
    app: Any, protocol: type[BoundedProtocol], limits: Limits, grace_seconds: float
) -> uvicorn.Config:
    """uvicorn with our settings: no log of its own, no trusted headers, HTTP alone."""
    return uvicorn.Config(
        app, http=protocol, ws="none", lifespan="off", log_config=None,
        access_log=False, proxy_headers=False, server_header=False,
        timeout_keep_alive=int(limits.idle_seconds_max), timeout_graceful_shutdown=max(1, int(grace_seconds)),
    )  # fmt: skip
