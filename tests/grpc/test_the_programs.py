"""The programs as they are started: a server process, and the kit that checks it from outside."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest

from faultline.server.auth import mint
from faultline.store import calls


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def _until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        assert process.poll() is None, "the server has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server does not listen")


@pytest.mark.long
def test_a_server_process_passes_the_conformance_kit_and_leaves_in_good_order(database, store):
    key, port = mint(), _free_port()
    store.run(calls.create_key(key.id, key.hash, "kit", ("work", "enqueue", "read", "operate")))
    known = {**os.environ, "FAULTLINE_DSN": database, "FAULTLINE_API_KEY": key.text}
    faultline = [sys.executable, "-m", "faultline"]
    server = subprocess.Popen(
        [*faultline, "server", "--http", "off", "--grpc", f"127.0.0.1:{port}"],
        env=known,
        stderr=subprocess.DEVNULL,
    )
    try:
        _until_listening(port, server)
        told = subprocess.run(
            [*faultline, "--output", "json", "conformance", f"grpc://127.0.0.1:{port}"],
            env=known, capture_output=True, timeout=110, check=False,
        )  # fmt: skip
    finally:
        server.terminate()
        code = server.wait(40)

    document = json.loads(told.stdout)
    assert [check for check in document["checks"] if check["verdict"] != "kept"] == []
    assert (told.returncode, document["conforms"], code) == (0, True, 0)
