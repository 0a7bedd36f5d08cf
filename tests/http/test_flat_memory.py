"""A gigabyte that is streamed at the server, and hundreds of idle connections, leave its memory as it was."""

import os
import re
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from faultline.server.auth import mint
from faultline.store import calls

GIGABYTE = 1024**3


@pytest.fixture
def process(database, store):
    """`faultline server` as people start it; its port and a key."""
    made = mint()
    store.run(calls.create_key(made.id, made.hash, made.id, ["admin"]))
    running = subprocess.Popen(
        [sys.executable, "-m", "faultline", "server", "--http", "127.0.0.1:0", "--no-watchdog",
         "--trust-loopback"],
        env={**os.environ, "FAULTLINE_DSN": database}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        for line in running.stderr:
            if "listening for HTTP" in line:
                yield running, int(re.search(r"127\.0\.0\.1:(\d+)", line)[1]), made.text
                break
    finally:
        running.terminate()
        running.communicate(timeout=30)
    assert running.returncode == 0


def rss(process):
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def get(port, path="/api/v1/jobs"):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        said = b""
        while more := sock.recv(65_536):
            said += more
    return said


def stream(port, head, most=GIGABYTE):
    """Send chunks until the server has had enough; how many bytes it took, and what it said."""
    chunk = b"10000\r\n" + b"a" * 65_536 + b"\r\n"
    sent, said = 0, b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(head.encode() + b"transfer-encoding: chunked\r\n\r\n")
        try:
            while sent < most:
                sock.sendall(chunk)
                sent += len(chunk)
            said = sock.recv(65_536)
        except OSError:
            pass
    return sent, said


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_s6_a_gigabyte_and_500_idle_connections_leave_the_memory_flat(process):
    running, port, key = process
    head = "POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    known = f"{head}authorization: Bearer {key}\r\n"
    stream(port, known, 4 * 2**20)
    assert get(port).startswith(b"HTTP/1.1 200")
    before = rss(running)

    sent = [stream(port, shown)[0] for shown in (known, head, known, known)]
    with ExitStack() as stack:
        for _ in range(500):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
        began = time.monotonic()
        assert get(port).startswith(b"HTTP/1.1 200")
        waited = time.monotonic() - began
    after = rss(running)

    assert all(taken < GIGABYTE for taken in sent)
    assert after - before < 24 * 2**20
    assert waited < 10
