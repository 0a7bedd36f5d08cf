"""Server: HTTP and gRPC in one process, on one loop, over one pool of connections."""

import asyncio
import contextlib
import importlib.util
import logging
import resource
import signal
from collections.abc import Coroutine
from importlib import import_module
from typing import Any, Final, Protocol

from faultline.config import Settings
from faultline.errors import ConfigError
from faultline.runtime.notify import telling
from faultline.server.auth import Authenticator
from faultline.server.config import ListenAddress, ServerConfig
from faultline.server.http import ApiConfig, create_app
from faultline.server.http.api_context import LOOPBACK_HOSTS, ApiContext, Metrics
from faultline.server.http.connection.http_server import HttpServer, bind
from faultline.server.listener.address_limits import AddressAllowance, networks
from faultline.server.listener.listen_policy import check_listen_policy
from faultline.server.listener.revoked_certificates import RevokedCertificates
from faultline.server.listener.tls import Certificates
from faultline.server.outage_report import reporting_outages
from faultline.server.traffic_stats import TrafficStats
from faultline.server.watchdog_task import watching
from faultline.store import calls
from faultline.store.connection_turns import ConnectionTurns
from faultline.store.pool import AsyncStore
from faultline.store.servers.pooler import look_for_pooler

log = logging.getLogger("faultline.server")

POOL_MAX: Final = 16
FILES_WANTED: Final = 16_384


class Grpc(Protocol):
    """The methods of the gRPC server that this module uses."""

    traffic: TrafficStats

    async def start(self) -> int: ...
    async def stop(self, grace: float) -> Any: ...
    def cancelled(self, job_id: int) -> None: ...
    def hurry(self) -> None: ...


class Scraped(Protocol):
    """The methods of the metrics that this module uses."""

    async def scrape(self, accept: str = "") -> tuple[bytes, str]: ...
    def close(self) -> None: ...


class Server:
    """One process of `faultline server`. Any number of them may serve one database.

    await Server(settings, ServerConfig()).run()
    """

    def __init__(self, settings: Settings, config: ServerConfig) -> None:
        self.settings = settings
        self.config = config
        self.ready = asyncio.Event()
        self.http: ListenAddress | None = None
        """The address for HTTP, once it is ready; the port is known by then, also if it was 0."""
        self.grpc: ListenAddress | None = None
        """The same for gRPC."""
        self._stopping = asyncio.Event()
        self._http: HttpServer | None = None
        self._grpc: Grpc | None = None
        self._traffic: list[TrafficStats] = []

    async def run(self, *, signals: bool = False) -> int:
        """Serve until told to stop, then let calls under way end within the grace; answers the exit code."""
        settings = await look_for_pooler(self.settings)
        direct = settings.pooler != "transaction"
        store = AsyncStore(
            settings.require_dsn(), prepare=direct, connections_max=POOL_MAX, turns=ConnectionTurns(POOL_MAX)
        )
        try:
            keys = await store.run(calls.list_keys())
            check_listen_policy(self.config, keys=len(keys))
            _raise_file_limit()
            if signals:
                self._obey_signals()
            authenticator = Authenticator(
                store, trust_loopback=self.config.trust_loopback, behind_proxy=self.config.behind_proxy,
                limits=self.config.limits,
            )  # fmt: skip
            async with contextlib.AsyncExitStack() as stack:
                await stack.enter_async_context(reporting_outages(store))
                if signals:
                    await stack.enter_async_context(telling(self.ready, self._stopping, self.status))
                if self.config.watchdog:
                    await stack.enter_async_context(watching(store.dsn, prepare=direct))
                metrics = None if self.config.http is None else metrics_of(store)
                if metrics is not None:
                    stack.callback(metrics.close)
                await self._serve(store, authenticator, None if metrics is None else metrics.scrape)
        finally:
            await store.close()
        return 0

    def status(self) -> str:
        """One line about the state of the process."""
        return f"serving on {', '.join(map(str, self.config.addresses))}"

    def stop(self) -> None:
        """Stop taking requests and let those under way end; a second call does not wait for them."""
        if self._stopping.is_set() and self._http is not None:
            self._http.force_exit = True
        if self._stopping.is_set() and self._grpc is not None:
            self._grpc.hurry()
        self._stopping.set()

    async def _serve(self, store: AsyncStore, authenticator: Authenticator, scrape: Metrics | None) -> None:
        parts = []
        context: ApiContext | None = None
        grpc = self._grpc = (
            grpc_server(store, authenticator, self.config) if self.config.grpc is not None else None
        )
        if self.config.http is not None:
            app = create_app(store, authenticator, api_config(self.config), scrape and self._scraped(scrape))
            context = app.state.context
            self._traffic.append(context.traffic)
            if grpc is not None:
                context.cancelled = grpc.cancelled
            if grpc is not None:
                self._traffic.append(grpc.traffic)
            parts.append(asyncio.create_task(self._listen(app, self.config.http)))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            if grpc is not None:
                assert self.config.grpc is not None
                self.grpc = ListenAddress(self.config.grpc.host, await grpc.start())
            self.ready.set()
            await asyncio.wait([stopping, *parts], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if context is not None:
                context.drain()
            if self._http is not None:
                self._http.should_exit = True
            grace = self.config.grace.total_seconds()
            if grpc is not None and self.ready.is_set():
                parts.append(asyncio.create_task(grpc.stop(grace)))
            for ended in await asyncio.gather(*parts, return_exceptions=True):
                if isinstance(ended, BaseException):  # raised only now: the other parts have ended
                    raise ended

    def _scraped(self, scrape: Metrics) -> Metrics:
        """A scrape of all counts up to now."""

        async def scraped(accept: str) -> tuple[bytes, str]:
            for traffic in self._traffic:
                traffic.flush()
            return await scrape(accept)

        return scraped

    def _listen(self, app: Any, address: ListenAddress) -> Coroutine[Any, Any, None]:
        """Bind now, so that a port in use stops the start; serve when awaited."""
        tls = None if self.config.tls is None else Certificates(self.config.tls, "HTTP")
        listed = None if self.config.tls is None else self.config.tls.revoked
        revoked = None if listed is None else RevokedCertificates(listed)
        sock = bind(address)
        self.http = ListenAddress(address.host, sock.getsockname()[1])
        allowance = AddressAllowance(
            self.config.limits.connections_per_address, networks(self.config.proxies),
            behind_proxy=self.config.behind_proxy,
        )  # fmt: skip
        grace = self.config.grace.total_seconds()
        self._http = HttpServer(
            app, self.config.limits, grace, tls, revoked, allowance, app.state.context.traffic
        )
        log.info("listening for HTTP%s on %s", "S" if tls else "", self.http)
        return self._http.serve([sock])

    def _obey_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)


def api_config(config: ServerConfig) -> ApiConfig:
    """The part of the settings that the API needs."""
    assert config.http is not None
    known = {*LOOPBACK_HOSTS, *(host.lower() for host in config.hosts)}
    if config.http.host not in ("0.0.0.0", "::"):
        known.add(config.http.host.lower())
    return ApiConfig(
        hosts=tuple(sorted(known)),
        any_host_with_key=not config.hosts and (not config.http.is_loopback or config.behind_proxy),
        drills=config.drills,
        limits=config.limits,
    )


def grpc_server(store: AsyncStore, authenticator: Authenticator, config: ServerConfig) -> Grpc:
    """The gRPC server, where its extra is installed."""
    if importlib.util.find_spec("grpc") is None:
        raise ConfigError("gRPC needs an extra: pip install 'faultline-queue[grpc]', or leave --grpc out")
    server: Grpc = import_module("faultline.server.grpc").GrpcServer(store, authenticator, config)
    return server


def metrics_of(store: AsyncStore) -> Scraped | None:
    """The answer of /metrics, where its extra is installed."""
    try:
        scraped: Scraped = import_module("faultline.metrics.prometheus").ServerMetrics(store)
    except (ImportError, ConfigError):
        log.info("no figures at /metrics: pip install 'faultline-queue[metrics]'")
        return None
    return scraped


def _raise_file_limit() -> None:
    """Each connection is a file, and the usual limit of 1,024 is for programs that open few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
