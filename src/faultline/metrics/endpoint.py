"""A small HTTP endpoint for /metrics, in a thread and a loop of its own: its failures never delay a job.

It answers GET and HEAD of one page, one request a connection. Everything has a bound: the number of
requests at once, the time of each, and its size.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from faultline.errors import ConfigError

log = logging.getLogger("faultline.metrics")

REQUEST_BYTES_MAX: Final = 8_192
REQUEST_SECONDS_MAX: Final = 5.0
ASKERS_MAX: Final = 32
BIND_AGAIN_SECONDS: Final = 5.0
LOOPBACK: Final = "127.0.0.1"

Scrape = Callable[[str], Awaitable[tuple[bytes, str]]]
"""Takes the Accept header, gives a body and its content type."""


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """The address to listen on."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> "MetricsAddress":
        """`PORT` on loopback, or `HOST:PORT`.

        >>> MetricsAddress.read("9187"), MetricsAddress.read("[::1]:9187")
        (MetricsAddress(host='127.0.0.1', port=9187), MetricsAddress(host='::1', port=9187))
        """
        host, _, port = text.strip().rpartition(":")
        if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535):
            raise ConfigError(
                f"{text[:60]!a} is no address to listen on; write PORT, HOST:PORT or [IPV6]:PORT"
            )
        if host and (":" in host) != (host.startswith("[") and host.endswith("]")):
            raise ConfigError(f"{text[:60]!a} is no address to listen on; an IPv6 address stands in brackets")
        return cls(host.strip("[]") or LOOPBACK, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class MetricsEndpoint:
    """Serves one page until closed.

    A port in use is tried again every few seconds, and logged once: jobs do not wait for it.
    """

    def __init__(self, address: MetricsAddress, scrape: Scrape) -> None:
        self.address = address
        self.port: int | None = None
        """The port it listens on, once it does."""
        self._scrape = scrape
        self._askers = 0
        self._listens = threading.Event()

    async def run(self) -> None:
        """Listen until cancelled."""
        server = await self._bind()
        self.port = server.sockets[0].getsockname()[1]
        self._listens.set()
        async with server:
            await server.serve_forever()

    async def _bind(self) -> asyncio.Server:
        told = False
        while True:
            try:
                return await asyncio.start_server(
                    self._answer,
                    self.address.host,
                    self.address.port,
                    limit=REQUEST_BYTES_MAX,
                    reuse_port=False,
                )
            except OSError as refused:
                if not told:
                    log.error(
                        "no metrics on %s for now, tried again every few seconds: %s", self.address, refused
                    )
                told = True
            await asyncio.sleep(BIND_AGAIN_SECONDS)

    def wait(self, seconds: float) -> bool:
        """Wait until it listens; for tests, and for the line that prints the address."""
        return self._listens.wait(seconds)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._askers += 1
        writer.transport.set_write_buffer_limits(0)  # so that a drain means that all of it is sent
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                if self._askers > ASKERS_MAX:
                    writer.write(_reply(HTTPStatus.SERVICE_UNAVAILABLE))
                else:
                    writer.write(await self._reply_to(await _request(reader)))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # a bad request gets no answer
        except Exception:
            log.exception("a scrape failed")
        finally:
            self._askers -= 1
            with contextlib.suppress(Exception):
                # Not `close`, which would wait for a reader that does not read.
                writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _reply_to(self, request: tuple[str, str, str]) -> bytes:
        method, path, accept = request
        if path.partition("?")[0] != "/metrics":
            return _reply(HTTPStatus.NOT_FOUND)
        if method not in ("GET", "HEAD"):
            return _reply(HTTPStatus.METHOD_NOT_ALLOWED)
        body, content_type = await self._scrape(accept)
        return _reply(HTTPStatus.OK, body, content_type, head_only=method == "HEAD")


async def _request(reader: asyncio.StreamReader) -> tuple[str, str, str]:
    """The method, the path, and the Accept header."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ", 2)
    accept = next((line[7:].strip() for line in lines if line.lower().startswith("accept:")), "")
    return method, path, accept


def _reply(
    status: HTTPStatus, body: bytes = b"", content_type: str = "text/plain", head_only: bool = False
) -> bytes:
    body = body or (b"" if status is HTTPStatus.OK else f"{status.phrase}\n".encode())
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (b"" if head_only else body)


@contextlib.contextmanager
def serving(address: MetricsAddress, scrape: Scrape) -> Iterator[MetricsEndpoint]:
    """Serve in a thread of its own while the block runs."""
    endpoint, loop = MetricsEndpoint(address, scrape), asyncio.new_event_loop()
    task = loop.create_task(endpoint.run())

    def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.close()

    thread = threading.Thread(target=run, daemon=True, name="faultline-metrics")
    thread.start()
    try:
        yield endpoint
    finally:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)
        thread.join(REQUEST_SECONDS_MAX)
