"""`make pin`: digests come from a registry; here from one on loopback that asks for a token, as others do."""

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts import pin
from tests.deploy.shipped import ROOT


def manifest(path: str) -> bytes:
    return f'{{"schemaVersion": 2, "of": "{path}"}}'.encode()


class Registry(BaseHTTPRequestHandler):
    """Manifests for requests with a token, and a token for each request."""

    def do_GET(self) -> None:
        here = f"http://{self.headers['host']}"
        if self.path.startswith("/token?"):
            self._reply(200, b'{"token": "let-me-in"}')
        elif self.headers.get("authorization") != "Bearer let-me-in":
            challenge = f'Bearer realm="{here}/token",service="loopback",scope="repository:x:pull"'
            self._reply(401, b"{}", **{"WWW-Authenticate": challenge})
        elif "grafana" in self.path and here in GONE:
            self._reply(404, b"{}")
        else:
            self._reply(200, manifest(self.path))

    def _reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not into the test's output."""


GONE: set[str] = set()


@pytest.fixture
def registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def run(file: Path, registry: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "scripts/pin.py", "--registry", registry, "--file", str(file)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


def test_every_image_of_compose_is_pinned_by_what_the_registry_has(registry, tmp_path):
    file = tmp_path / ".env"
    file.write_text("COMPOSE_PROFILES=shop\nPOSTGRES_IMAGE=postgres:18@sha256:old\n")

    told = run(file, registry)

    assert told.returncode == 0, told.stderr
    of_postgres = hashlib.sha256(manifest("/v2/library/postgres/manifests/18")).hexdigest()
    lines = file.read_text().splitlines()
    assert lines[:2] == ["COMPOSE_PROFILES=shop", f"POSTGRES_IMAGE=postgres:18@sha256:{of_postgres}"]
    assert {line.partition("=")[0] for line in lines[1:]} == set(pin.images())
    assert set(pin.images()) == {"POSTGRES_IMAGE", "PROMETHEUS_IMAGE", "GRAFANA_IMAGE", "PYTHON_IMAGE"}


def test_where_one_cannot_be_had_nothing_is_written(registry, tmp_path):
    GONE.add(registry)
    file = tmp_path / ".env"

    told = run(file, registry)

    assert told.returncode == 1
    assert "no image was pinned" in told.stderr
    assert "grafana" in told.stderr
    assert not file.exists()


def test_a_registry_that_cannot_be_reached_is_told(tmp_path):
    told = run(tmp_path / ".env", "http://127.0.0.1:1")

    assert told.returncode == 1
    assert "no image was pinned" in told.stderr
