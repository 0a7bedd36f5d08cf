"""The world outside: a server on a Unix socket that counts its calls, by key and token."""

import asyncio
import contextlib
import json
import os
import socket
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SINK: Final = "NEMESIS_SINK"
WAIT_SECONDS_MAX: Final = 2.0


def call(key: str, job_id: int, request: int, token: int) -> str:
    """Ask the sink for an effect, as a handler does; it answers `done`, `repeated` or `stale`."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(WAIT_SECONDS_MAX)
        line.connect(os.environ[SINK])
        line.sendall(
            json.dumps({"key": key, "job": job_id, "request": request, "token": token}).encode() + b"\n"
        )
        return line.makefile().readline().strip()


Called = tuple[int, int | None]
"""A job by its id and its request: after a lossy failover another job may have the id of a lost one."""


@dataclass
class Sink:
    """Keeps each effect; a known key is answered and not done again, an old token is refused."""

    path: Path
    calls: int = 0
    repeated: int = 0
    stale: int = 0
    done: dict[str, int] = field(default_factory=dict)
    """Each key, and the token that got it done."""
    keys: defaultdict[Called, set[str]] = field(default_factory=lambda: defaultdict(set))
    _highest: dict[Called, int] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["Sink"]:
        server = await asyncio.start_unix_server(self._serve, self.path)
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError):
            said = json.loads(await reader.readline())
            writer.write(
                self.take(said["key"], (said["job"], said["request"]), said["token"]).encode() + b"\n"
            )
            await writer.drain()
        writer.close()

    def take(self, key: str, job: Called, token: int) -> str:
        self.calls += 1
        self.keys[job].add(key)
        if token < self._highest.get(job, 0):
            self.stale += 1
            return "stale"
        self._highest[job] = token
        if key in self.done:
            self.repeated += 1
            return "repeated"
        self.done[key] = token
        return "done"
