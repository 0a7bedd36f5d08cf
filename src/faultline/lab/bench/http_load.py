"""A plain load generator for HTTP, in a process of its own: many connections, one request at a time on each.

Reads what to do as JSON from standard input, writes what came of it as JSON to standard output.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from faultline.lab.bench.load import PAD


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLoad:
    """Where to send how many jobs a request, over how many connections, for how long."""

    host: str
    port: int
    key: str
    connections: int
    batch: int
    seconds: float

    def requests(self) -> list[bytes]:
        """A few different requests, made before the clock starts: it is the server that is measured."""
        return [self._request(number) for number in range(64)]

    def _request(self, number: int) -> bytes:
        jobs = [{"task": "noop", "args": {"n": number, "pad": PAD}} for _ in range(self.batch)]
        path, body = ("/api/v1/jobs", jobs[0]) if self.batch == 1 else ("/api/v1/jobs/batch", {"jobs": jobs})
        data = json.dumps(body, separators=(",", ":")).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\nauthorization: Bearer {self.key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        )
        return head.encode() + data


class _Client(asyncio.Protocol):
    """One connection: sends the next request as soon as the last is answered."""

    def __init__(self, requests: list[bytes], number: int, until: float) -> None:
        self._requests = requests
        self._turn = number
        self._until = until
        self._buffer = b""
        self._sent_at = 0.0
        self.times: list[float] = []
        self.refused = 0
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._sent_at = time.perf_counter()
        if self._sent_at >= self._until:
            self._end()
            return
        self._turn += 1
        self._transport.write(self._requests[self._turn % len(self._requests)])

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self._buffer = b""
        if head.startswith(b"HTTP/1.1 201"):
            self.times.append((time.perf_counter() - self._sent_at) * 1e3)
        else:
            self.refused += 1
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        self._transport.close()
        if not self.over.done():
            self.over.set_result(None)


async def run(load: HttpLoad) -> dict[str, Any]:
    """Send for as long as was asked; what came of it."""
    requests = load.requests()
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    clients = []
    for number in range(load.connections):
        make = partial(_Client, requests, number, began + load.seconds)
        _, client = await loop.create_connection(make, load.host, load.port)
        clients.append(client)
    await asyncio.gather(*(client.over for client in clients))
    return {
        "seconds": time.perf_counter() - began,
        "times": sorted(taken for client in clients for taken in client.times),
        "refused": sum(client.refused for client in clients),
    }


def main() -> None:
    """Where the process begins."""
    load = HttpLoad(**json.load(sys.stdin))
    try:
        import uvloop
    except ImportError:
        answer = asyncio.run(run(load))
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            answer = runner.run(run(load))
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
