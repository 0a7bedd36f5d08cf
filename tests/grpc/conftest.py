"""A gRPC server in the test's own loop, keys to show, and a worker spoken word by word."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import grpc
import pytest

from faultline.config import Settings
from faultline.lab.conformance.scripted_worker import ServerUnderTest
from faultline.server.auth import Authenticator, mint
from faultline.server.config import ListenAddress, ServerConfig
from faultline.server.grpc import GrpcConfig, GrpcServer
from faultline.server.process import Server
from faultline.store import calls
from faultline.store.pool import AsyncStore

ANY_PORT = ListenAddress("127.0.0.1", 0)


@dataclass
class Served:
    """A server at work, and ways to come to it."""

    server: GrpcServer
    store: AsyncStore
    key: str = field(repr=False)
    channels: list[grpc.aio.Channel] = field(default_factory=list)

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def channel(self, **options: Any) -> grpc.aio.Channel:
        """A connection of its own: channels to one target would share theirs."""
        alone = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_send_message_length", -1),
            *options.items(),
        ]
        self.channels.append(grpc.aio.insecure_channel(self.target, alone))
        return self.channels[-1]

    def place(self, key: str | None = "", queue: str = "default") -> ServerUnderTest:
        """A worker's and client's way in; with the server's own key unless told otherwise."""
        return ServerUnderTest(self.channel(), self.key if key == "" else key, queue)

    async def key_for(self, *scopes: str, queues: tuple[str, ...] | None = None, **more: Any) -> str:
        """The text of a new key."""
        return await make_key(self.store, *scopes, queues=queues, **more)


async def make_key(
    store: AsyncStore, *scopes: str, queues: tuple[str, ...] | None = None, expires_at: Any = None
) -> str:
    key = mint()
    await store.run(calls.create_key(key.id, key.hash, f"test {key.id}", scopes, queues, expires_at))
    return key.text


@asynccontextmanager
async def serving(dsn: str, **config: Any) -> AsyncIterator[Served]:
    """A server on a port of its own, stopped when the block ends."""
    store = AsyncStore(dsn)
    trusts = config.pop("trust_loopback", True)
    wanted = GrpcConfig(**{"address": "127.0.0.1:0", **config})
    known = Authenticator(store, trust_loopback=trusts, behind_proxy=wanted.behind_proxy, limits=wanted)
    server = GrpcServer(store, known, wanted)
    await server.start()
    served = Served(server, store, await make_key(store, "work", "enqueue", "read", "operate"))
    try:
        yield served
    finally:
        for channel in served.channels:
            await channel.close()
        await server.stop(0)
        await store.close()


@asynccontextmanager
async def a_server(dsn: str, pooler: str = "none", **config: Any) -> AsyncIterator[Server]:
    """The whole server, with both its APIs, in the test's own loop."""
    usual = {"http": ANY_PORT, "grpc": ANY_PORT, "watchdog": False, "grace": timedelta(seconds=1)}
    asked = {**usual, "trust_loopback": True, **config}
    server = Server(Settings.read(dsn, pooler, environment={}), ServerConfig(**asked))
    running = asyncio.create_task(server.run())
    async with asyncio.timeout(60):
        await server.ready.wait()
    try:
        yield server
    finally:
        server.stop()
        await running


@pytest.fixture
def served(database: str):
    """Carry a test's coroutine to its end, with a server of its own."""

    def run(test: Any, **config: Any) -> Any:
        async def main() -> Any:
            async with asyncio.timeout(60), serving(database, **config) as place:
                return await test(place)

        return asyncio.run(main())

    return run
