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

from faultline.access import Doorman
from faultline.api import ApiConfig, create_app
from faultline.api.desk import LOOPBACK_HOSTS, Desk, Metrics
from faultline.config import Settings
from faultline.errors import ConfigError
from faultline.notify import telling
from faultline.server.addresses import Allowance, networks
from faultline.server.config import Address, ServerConfig
from faultline.server.door import check_door
from faultline.server.doors import DoorFigures
from faultline.server.listening import HttpServer, bind
from faultline.server.outage import telling_outages
from faultline.server.revoked import Revoked
from faultline.server.tls import Certificates
from faultline.server.watching import watching
from faultline.store import calls
from faultline.store.pooler import look_for_pooler
from faultline.store.run import AsyncStore
from faultline.store.turns import Turns

log = logging.getLogger("faultline.server")

POOL_MAX: Final = 16
FILES_WANTED: Final = 16_384


class Grpc(Protocol):
    """What we ask of the gRPC server."""

    door: DoorFigures

    async def start(self) -> int: ...
    async def stop(self, grace: float) -> Any: ...
    def cancelled(self, job_id: int) -> None: ...
    def hurry(self) -> None: ...


class Scraped(Protocol):
    """What we ask of the metrics."""

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
        self.http: Address | None = None
        """Where it listens for HTTP, once it is ready; the port is known by then also if it was 0."""
        self.grpc: Address | None = None
        """The same for gRPC."""
        self._stopping = asyncio.Event()
        self._http: HttpServer | None = None
        self._grpc: Grpc | None = None
        self._doors: list[DoorFigures] = []

    async def run(self, *, signals: bool = False) -> int:
        """Serve until told to stop, then let calls in hand end within the grace; answers the exit code."""
        settings = await look_for_pooler(self.settings)
        direct = settings.pooler != "transaction"
        store = AsyncStore(
            settings.require_dsn(), prepare=direct, connections_max=POOL_MAX, turns=Turns(POOL_MAX)
        )
        try:
            keys = await store.run(calls.list_keys())
            check_door(self.config, keys=len(keys))
            _raise_file_limit()
            if signals:
                self._obey_signals()
            async with contextlib.AsyncExitStack() as stack:
                await stack.enter_async_context(telling_outages(store))
                if signals:
                    await stack.enter_async_context(telling(self.ready, self._stopping, self.status))
                if self.config.watchdog:
                    await stack.enter_async_context(watching(store.dsn, prepare=direct))
                metrics = None if self.config.http is None else metrics_of(store)
                if metrics is not None:
                    stack.callback(metrics.close)
                await self._serve(store, Doorman(store), None if metrics is None else metrics.scrape)
        finally:
            await store.close()
        return 0

    def status(self) -> str:
        """One line for whoever looks at the process."""
        return f"serving on {', '.join(map(str, self.config.addresses))}"

    def stop(self) -> None:
        """Stop taking requests and let those in hand end; said twice, do not wait for them."""
        if self._stopping.is_set() and self._http is not None:
            self._http.force_exit = True
        if self._stopping.is_set() and self._grpc is not None:
            self._grpc.hurry()
        self._stopping.set()

    async def _serve(self, store: AsyncStore, doorman: Doorman, scrape: Metrics | None) -> None:
        parts = []
        desk: Desk | None = None
        grpc = self._grpc = grpc_server(store, doorman, self.config) if self.config.grpc is not None else None
        if self.config.http is not None:
            app = create_app(store, doorman, api_config(self.config), scrape and self._scraped(scrape))
            desk = app.state.desk
            self._doors.append(desk.door)
            if grpc is not None:
                desk.cancelled = grpc.cancelled
            if grpc is not None:
                self._doors.append(grpc.door)
            parts.append(asyncio.create_task(self._listen(app, self.config.http)))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            if grpc is not None:
                assert self.config.grpc is not None
                self.grpc = Address(self.config.grpc.host, await grpc.start())
            self.ready.set()
            await asyncio.wait([stopping, *parts], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if desk is not None:
                desk.drain()
            if self._http is not None:
                self._http.should_exit = True
            grace = self.config.grace.total_seconds()
            if grpc is not None and self.ready.is_set():
                parts.append(asyncio.create_task(grpc.stop(grace)))
            for ended in await asyncio.gather(*parts, return_exceptions=True):
                if isinstance(ended, BaseException):  # but only now: the others have come to their end
                    raise ended

    def _scraped(self, scrape: Metrics) -> Metrics:
        """A scrape of what the doors have counted up to now."""

        async def scraped(accept: str) -> tuple[bytes, str]:
            for door in self._doors:
                door.flush()
            return await scrape(accept)

        return scraped

    def _listen(self, app: Any, address: Address) -> Coroutine[Any, Any, None]:
        """Bind now, so that a port that is taken stops the start; serve when awaited."""
        tls = None if self.config.tls is None else Certificates(self.config.tls, "HTTP")
        listed = None if self.config.tls is None else self.config.tls.revoked
        revoked = None if listed is None else Revoked(listed)
        sock = bind(address)
        self.http = Address(address.host, sock.getsockname()[1])
        allowance = Allowance(
            self.config.limits.connections_per_address, networks(self.config.proxies),
            behind_proxy=self.config.behind_proxy,
        )  # fmt: skip
        grace = self.config.grace.total_seconds()
        self._http = HttpServer(app, self.config.limits, grace, tls, revoked, allowance, app.state.desk.door)
        log.info("listening for HTTP%s on %s", "S" if tls else "", self.http)
        return self._http.serve([sock])

    def _obey_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)


def api_config(config: ServerConfig) -> ApiConfig:
    """What the API has to know of where it is served."""
    assert config.http is not None
    known = {*LOOPBACK_HOSTS, *(host.lower() for host in config.hosts)}
    if config.http.host not in ("0.0.0.0", "::"):
        known.add(config.http.host.lower())
    return ApiConfig(
        hosts=tuple(sorted(known)),
        any_host_with_key=not config.hosts and (not config.http.is_loopback or config.behind_proxy),
        behind_proxy=config.behind_proxy,
        trust_loopback=config.trust_loopback,
        limits=config.limits,
    )


def grpc_server(store: AsyncStore, doorman: Doorman, config: ServerConfig) -> Grpc:
    """The gRPC server, where its extra is installed."""
    if importlib.util.find_spec("grpc") is None:
        raise ConfigError("gRPC needs an extra: pip install 'faultline-queue[grpc]', or leave --grpc out")
    server: Grpc = import_module("faultline.remote.serving").GrpcServer(store, doorman, config)
    return server


def metrics_of(store: AsyncStore) -> Scraped | None:
    """What /metrics answers with, where its extra is installed."""
    try:
        scraped: Scraped = import_module("faultline.exporters.prometheus").ServerMetrics(store)
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
