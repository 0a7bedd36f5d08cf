"""A server in a process of its own, and a crowd before its doors: S6 and S7 at full size."""

import asyncio
import os
import re
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import grpc
import pytest

from faultline.lab.conformance.scripted_worker import ServerUnderTest
from faultline.server.auth import mint
from faultline.store import calls
from faultline.store.pool import Store

MANY: Final = 10_000
FILES_NEEDED: Final = MANY + 600
MIB: Final = 1_048_576


def room_for_many_files() -> None:
    """Each connection is a file here too; skip with a reason where the system does not allow so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES_NEEDED:
        pytest.skip(f"the hard limit of open files is {hard}: {MANY} connections need {FILES_NEEDED}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES_NEEDED), hard))


@dataclass
class Besieged:
    """A running server, its memory, and ways to connect to it."""

    process: subprocess.Popen[str]
    http: int
    rpc: int
    dsn: str
    channels: list[grpc.aio.Channel] = field(default_factory=list)

    @property
    def memory(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @property
    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208 - only how many

    def key(self, *scopes: str) -> str:
        made = mint()
        store = Store(self.dsn)
        store.run(calls.create_key(made.id, made.hash, made.id, scopes))
        store.close()
        return made.text

    def place(self, key: str) -> ServerUnderTest:
        """A connection of its own for gRPC: channels to one address would share theirs."""
        alone = [("grpc.use_local_subchannel_pool", 1)]
        self.channels.append(grpc.aio.insecure_channel(f"127.0.0.1:{self.rpc}", alone))
        return ServerUnderTest(self.channels[-1], key, "default")

    async def close(self) -> None:
        await asyncio.gather(*(channel.close() for channel in self.channels))
        self.channels.clear()


@contextmanager
def besieged(dsn: str) -> Iterator[Besieged]:
    """`faultline server` as people start it, with both doors open."""
    command = ["server", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--no-watchdog", "--grace", "5s",
               "--trust-loopback"]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "faultline", *command],
        env={**os.environ, "FAULTLINE_DSN": dsn}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    reading = threading.Thread(target=process.stderr.read, daemon=True)
    try:
        http, rpc = (port_in(process.stderr, kind) for kind in ("HTTP", "gRPC"))
        reading.start()  # a full pipe would hold the server up at its next line
        yield Besieged(process, http, rpc, dsn)
    finally:
        process.terminate()
        process.wait(60)
        reading.join(10)
        process.stderr.close()
    assert process.returncode == 0


def port_in(lines: IO[str], kind: str) -> int:
    for line in lines:
        if told := re.search(rf"listening for {kind} on 127\.0\.0\.1:(\d+)", line):
            return int(told[1])
    raise AssertionError(f"the server did not say where it listens for {kind}")


def knock(port: int, say: bytes = b"") -> socket.socket:
    """One more of the crowd: it connects, sends this, and stays."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=30)
    if say:
        sock.sendall(say)
    return sock


def heard(sock: socket.socket, seconds: float = 0.0) -> bytes | None:
    """What the server has said on it by now; None while it has said nothing and not hung up."""
    sock.settimeout(seconds)
    try:
        return sock.recv(65_536)
    except (BlockingIOError, TimeoutError):
        return None
    except OSError:
        return b""


def fetched(port: int, path: str, key: str | None = None) -> bytes:
    """What a well-behaved client is answered."""
    shown = "" if key is None else f"authorization: Bearer {key}\r\n"
    ask = f"GET {path} HTTP/1.1\r\nhost: localhost\r\n{shown}connection: close\r\n\r\n"
    with knock(port, ask.encode()) as sock:
        said = b""
        while more := sock.recv(65_536):
            said += more
    return said


async def code_of(call: Any, seconds: float) -> Any:
    """How a stream ended; None if it has not by then."""
    try:
        async with asyncio.timeout(seconds):
            return await call.code()
    except TimeoutError:
        return None
