"""A server to ask: the real one, in a thread of its own with a loop of its own, on a port of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx2

from faultline.config import Settings
from faultline.server.auth import mint
from faultline.server.config import ListenAddress, ServerConfig
from faultline.server.limits import Limits
from faultline.server.process import Server
from faultline.store import calls
from faultline.store.pool import Store

LOOPBACK = ListenAddress("127.0.0.1", 0)


class Service:
    """A running server, and clients for it."""

    def __init__(self, dsn: str, address: ListenAddress) -> None:
        self.dsn = dsn
        self.address = address
        self.url = f"http://{address}"
        self._clients: list[httpx2.Client] = []

    def client(self, key: str | None = None, **headers: str) -> httpx2.Client:
        """A client that shows this key with every request."""
        shown = {} if key is None else {"authorization": f"Bearer {key}"}
        client = httpx2.Client(base_url=self.url, headers={**shown, **headers}, timeout=60)
        self._clients.append(client)
        return client

    def key(self, *scopes: str, queues: list[str] | None = None, name: str = "", **options: Any) -> str:
        """A new API key."""
        made = mint()
        store = Store(self.dsn)
        store.run(calls.create_key(made.id, made.hash, name or made.id, scopes, queues, **options))
        store.close()
        return made.text

    def close(self) -> None:
        for client in self._clients:
            client.close()


def code_of(answer: httpx2.Response) -> str | None:
    """Which kind of problem an answer is; None when it is none."""
    told: Any = answer.json()
    code: str | None = told.get("code") if isinstance(told, dict) else None
    return code


@contextmanager
def serving(
    dsn: str,
    limits: Limits | None = None,
    run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run,
    **config: Any,
) -> Iterator[Service]:
    """A server on this database for as long as the block lasts."""
    trusts = not (config.get("behind_proxy") or config.get("proxies"))
    usual = {"http": LOOPBACK, "watchdog": False, "limits": limits or Limits(), "trust_loopback": trusts}
    wanted = ServerConfig(**{**usual, **config})
    ready = threading.Event()
    told: dict[str, Any] = {}

    async def serve() -> None:
        server = Server(Settings(dsn=dsn), wanted)
        loop = asyncio.get_running_loop()
        told["stop"] = lambda: loop.call_soon_threadsafe(server.stop)
        running = asyncio.create_task(server.run())
        waiting = asyncio.create_task(server.ready.wait())
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if running.done():
            await running
        told["address"] = server.http
        ready.set()
        await running

    def in_thread() -> None:
        try:
            run(serve())
        except Exception as error:
            told["error"] = error
        finally:
            ready.set()

    thread = threading.Thread(target=in_thread)
    thread.start()
    assert ready.wait(20)
    if "error" in told:
        thread.join()
        raise told["error"]
    service = Service(dsn, replace(told["address"], host="127.0.0.1"))
    try:
        yield service
    finally:
        service.close()
        told["stop"]()
        thread.join(60)
        assert not thread.is_alive()
