"""GrpcServer: binds, serves and stops."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import grpc
import psycopg
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from faultline.errors import ConfigError, FaultlineError
from faultline.rpc.v1 import client_pb2, client_pb2_grpc, worker_pb2, worker_pb2_grpc
from faultline.server.auth import Authenticator
from faultline.server.config import ServerConfig, Tls
from faultline.server.grpc import memory
from faultline.server.grpc.grpc_config import GrpcConfig
from faultline.server.grpc.guard.call_guard import CallGuard
from faultline.server.grpc.guard.message_reader import KeyFirst
from faultline.server.grpc.health_service import KeyedHealth, KeyedReflection
from faultline.server.grpc.jobs_service import JobsService
from faultline.server.grpc.sessions.cancel_notices import CancelNotices
from faultline.server.grpc.sessions.wait_queue import WaitQueue
from faultline.server.grpc.sessions.worker_service import WorkerService
from faultline.server.grpc.workers_service import WorkersService
from faultline.server.listener.tls import Certificates
from faultline.store.driver.connect import acheck_server
from faultline.store.driver.listen import listen
from faultline.store.driver.notifications import cancelled_in
from faultline.store.pool import AsyncStore

log = logging.getLogger("faultline.remote")

HEALTH_EVERY: Final = 5.0
LISTEN_AGAIN: Final = 1.0
LAST_WORDS: Final = 1.0
"""The time for open calls after the grace is over."""

SERVICES: Final = tuple(
    file.services_by_name[name].full_name
    for file, name in ((worker_pb2.DESCRIPTOR, "Workers"), (client_pb2.DESCRIPTOR, "Jobs"))
)


class GrpcServer:
    """One gRPC server over one store; any number of them may serve one database.

    >>> async def serve(store: AsyncStore) -> None:
    ...     server = GrpcServer(store, Authenticator(store), GrpcConfig(address="127.0.0.1:0"))
    ...     port = await server.start()
    ...     await server.stop(grace=25.0)
    """

    def __init__(
        self, store: AsyncStore, authenticator: Authenticator, config: GrpcConfig | ServerConfig
    ) -> None:
        self.config = GrpcConfig.of(config)
        self.wait_queue = WaitQueue(self.config.asked_queues_max, self.config.asked_queues_per_key)
        self.guard = CallGuard(authenticator, self.config)
        self.traffic = self.guard.traffic
        self.service = WorkerService(store, self.config, self.wait_queue)
        self.workers = WorkersService(self.service, self.guard, self.spawn)
        self.jobs = JobsService(store, self.config, self.guard, self.workers.cancelled)
        self.cancels = CancelNotices(store, self.workers)
        self.port = 0
        self._store = store
        self._hurrying = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._parts: list[asyncio.Task[Any]] = []
        self._health = KeyedHealth(self.guard)

    async def start(self) -> int:
        """Listen; answers the port, also where the configured port was 0."""
        self._server = grpc.aio.server(options=self.config.options())
        services: Any = KeyFirst(self._server, self.config)
        worker_pb2_grpc.add_WorkersServicer_to_server(self.workers, services)  # type: ignore[no-untyped-call]
        client_pb2_grpc.add_JobsServicer_to_server(self.jobs, services)  # type: ignore[no-untyped-call]
        health_pb2_grpc.add_HealthServicer_to_server(self._health, services)
        if self.config.reflection:
            names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflected = KeyedReflection(self.guard, names)
            reflection_pb2_grpc.add_ServerReflectionServicer_to_server(reflected, services)
        self.port = self._bind()
        await self._say_well(await self._is_well())
        await self._server.start()
        parts = [self.wait_queue.poll, self._watch, self.cancels.run, self._watch_connections, memory.watch]
        if self._store.listens:
            parts.append(self._listen)
        self._parts = [asyncio.create_task(_kept(part)) for part in parts]
        where = f"{self.config.address.rpartition(':')[0]}:{self.port}"  # the port may have been 0
        log.info("listening for gRPC%s on %s", " with TLS" if self.config.tls else "", where)
        return self.port

    def _bind(self) -> int:
        try:
            if self.config.tls is None:
                return self._server.add_insecure_port(self.config.address)
            return self._server.add_secure_port(self.config.address, _credentials(self.config.tls))
        except RuntimeError as error:
            raise ConfigError(
                f"cannot listen for gRPC on {self.config.address}; choose another port: {error}"
            ) from None

    async def stop(self, grace: float) -> None:
        """Stop assigning jobs, tell every worker, let the calls under way end, and stop."""
        until = time.monotonic() + grace
        await self._health.enter_graceful_shutdown()
        self.jobs.waits.end()
        self.workers.drain(grace)
        while self.workers.sessions and time.monotonic() < until and not self._hurrying:  # noqa: ASYNC110 - many things end a session
            await asyncio.sleep(0.02)
        self.guard.closed = True
        await self._server.stop(min(LAST_WORDS, max(0.0, grace)))
        for part in self._parts:
            part.cancel()
        await asyncio.gather(*self._parts, return_exceptions=True)
        if self._tasks:  # jobs on their way back
            await asyncio.wait(list(self._tasks), timeout=LAST_WORDS)

    async def _watch_connections(self) -> None:
        await self.guard.connections.watch(self.port)

    async def _listen(self) -> None:
        await listen(self._store.dsn, self._heard, lambda: LISTEN_AGAIN)

    def _heard(self, news: str | None) -> None:
        """The one listener of the process: wakes waiting Asks, and passes on the news of cancelled jobs."""
        if news and (jobs := cancelled_in(news)):
            self.cancels.heard(jobs)
        else:
            self.wait_queue.notified(news)

    def hurry(self) -> None:
        """Stop the wait for workers."""
        self._hurrying = True

    def cancelled(self, job_id: int) -> None:
        """A job was cancelled through the HTTP API of this process: tell its worker."""
        self.workers.cancelled(job_id)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task that outlives the call that started it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("a task ended with an error that its caller is told: %s", error)

    async def _watch(self) -> None:
        """Keep the health service true: serving while the database answers and its schema is ours."""
        while True:
            await self._say_well(await self._is_well())
            await asyncio.sleep(HEALTH_EVERY)

    async def _say_well(self, well: bool) -> None:
        words = health_pb2.HealthCheckResponse
        for name in ("", *SERVICES):
            await self._health.set(name, words.SERVING if well else words.NOT_SERVING)

    async def _is_well(self) -> bool:
        try:
            async with asyncio.timeout(HEALTH_EVERY), self._store.connection() as conn:
                await acheck_server(conn)
        except (FaultlineError, psycopg.Error, TimeoutError, OSError):
            return False
        except Exception:
            log.exception("looking whether the database answers failed unexpectedly")
            return False
        return True


async def _kept(part: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a part of the server until cancelled; a part that fails is logged and begins again."""
    while True:
        try:
            await part()
        except Exception:
            log.exception("a part of the gRPC server failed, and begins again: %s", part.__qualname__)
        await asyncio.sleep(LISTEN_AGAIN)


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    """TLS 1.2 or newer, which is gRPC's own floor; with a client CA, clients need a certificate of it.

    The files are read again for each handshake: renewed files need no restart.
    """
    certificates = Certificates(tls, "gRPC")

    def read() -> grpc.ServerCertificateConfiguration:
        client_ca = None if tls.client_ca is None else tls.client_ca.read_bytes()
        pair = (tls.key.read_bytes(), tls.cert.read_bytes())
        return grpc.ssl_server_certificate_configuration([pair], client_ca)

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        try:
            return read() if certificates.renewed() else None
        except Exception:
            log.exception("the new certificate for gRPC could not be read; the last one stays")
            return None

    return grpc.dynamic_ssl_server_credentials(read(), renewed, tls.client_ca is not None)  # type: ignore[arg-type]
