"""Bodies: whose they are is asked before they are read, and after one that took long once more."""

import json
import select
import socket
import time
from contextlib import ExitStack

import pytest

from faultline.server.auth.api_keys import id_of
from faultline.server.http.guard import request_guard
from faultline.server.limits import Limits
from faultline.store import calls
from tests.http.serving import serving

LARGE = 200_000
HEAD = (
    "POST {} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n"
    "content-length: {}\r\n\r\n"
)


def begun(service, path, key, length, sent=b""):
    """A request whose body is not all there."""
    sock = socket.create_connection((service.address.host, service.address.port), timeout=20)
    sock.sendall(HEAD.format(path, key, length).encode() + sent)
    return sock


@pytest.mark.parametrize(
    ("path", "status"),
    [("jobs", 403), ("jobs/batch", 403), ("jobs/7/cancel", 403), ("queues/q/pause", 403), ("nowhere", 404)],
)
def test_a_key_that_may_write_nothing_is_answered_before_its_body(service, path, status):
    key = service.key("read")

    with begun(service, f"/api/v1/{path}", key, LARGE) as sock:
        assert b" %d " % status in sock.recv(4096).split(b"\r\n", 1)[0]


def test_a_key_that_may_not_enqueue_is_answered_before_its_batch(service):
    with begun(service, "/api/v1/jobs/batch", service.key("operate"), LARGE) as sock:
        assert b" 403 " in sock.recv(4096).split(b"\r\n", 1)[0]


def test_unfinished_bodies_of_one_key_stop_no_writes_of_another(database):
    batch = json.dumps({"jobs": [{"task": "t", "args": {"a": "x" * (LARGE - 100)}}]}).encode()
    with serving(database, Limits(batch_bytes_max=LARGE)) as own, ExitStack() as held:
        greedy, other = own.key("enqueue"), own.client(own.key("enqueue"))
        socks = [
            held.enter_context(begun(own, "/api/v1/jobs/batch", greedy, LARGE, b" " * (LARGE - 2)))
            for _ in range(16)
        ]
        refused, _, _ = select.select(socks, [], [], 30)  # those before it have what a key may hold

        sent = other.post("/api/v1/jobs/batch", content=batch, headers={"content-type": "application/json"})
        assert sent.status_code == 201, sent.text
        assert b" 429 " in refused[0].recv(4096).split(b"\r\n", 1)[0]
        mine = own.client(greedy).post("/api/v1/jobs", json={"task": "t"})
        assert mine.status_code == 201, mine.text  # a small one has room beside the large ones


@pytest.mark.parametrize("what", ["submit", "cancel"])
def test_a_key_that_is_revoked_while_its_body_comes_does_nothing(service, store, submit, monkeypatch, what):
    monkeypatch.setattr("faultline.server.auth.authenticator.CACHE_SECONDS_MAX", 0.0)
    monkeypatch.setattr(request_guard, "LOOK_AGAIN_SECONDS", 0.2, raising=False)
    job, key = submit(), service.key("enqueue", "operate")
    path, body = {
        "submit": ("/api/v1/jobs", b'{"task":"t","args":{"who":"revoked"}}'),
        "cancel": (f"/api/v1/jobs/{job}/cancel", b'{"reason":"revoked"}'),
    }[what]

    with begun(service, path, key, len(body), body[:-1]) as sock:
        time.sleep(0.3)
        store.run(calls.revoke_key(id_of(key)))
        sock.sendall(body[-1:])
        said = sock.recv(4096)

    assert b" 401 " in said.split(b"\r\n", 1)[0], said
    assert store.run(calls.get(job)).state == "queued"
