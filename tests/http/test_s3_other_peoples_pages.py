"""S3, S4: a page that an operator happens to visit cannot use the server behind their back."""

import socket
from typing import Any

import httpx2
import pytest

from faultline.server.config import ListenAddress
from faultline.store import calls
from tests.http.serving import LOOPBACK, Service, code_of, serving
from tests.support import state_of

JOBS = "/api/v1/jobs"


@pytest.mark.parametrize(
    "media_type",
    [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "text/plain;application/json",
        "",
    ],
)
def test_s3_what_a_form_can_send_is_refused(admin, submit, store, media_type):
    job_id = submit()
    headers = {"content-type": media_type} if media_type else {}

    answer = admin.post(f"{JOBS}/{job_id}/cancel", content=b'{"reason": "x"}', headers=headers)

    assert (answer.status_code, code_of(answer)) == (415, "not_json")
    assert state_of(store, job_id) == "queued"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_s3_a_page_from_elsewhere_is_refused_also_with_a_key(admin, submit, store, headers):
    job_id = submit()

    answer = admin.post(f"{JOBS}/{job_id}/cancel", json={}, headers=headers)

    assert (answer.status_code, code_of(answer)) == (403, "cross_origin")
    assert "access-control-allow-origin" not in answer.headers
    assert state_of(store, job_id) == "queued"


def test_s3_the_same_origin_may(service, admin, submit):
    assert (
        admin.post(f"{JOBS}/{submit()}/cancel", json={}, headers={"origin": service.url}).status_code == 200
    )


def test_s3_no_get_changes_anything(admin, submit, store):
    job_id = submit()

    for path in (
        f"{JOBS}/{job_id}/cancel",
        f"{JOBS}/{job_id}/retry",
        "/api/v1/queues/default/pause",
        f"{JOBS}/bulk",
    ):
        assert admin.get(path).status_code in (405, 404, 422)
    assert state_of(store, job_id) == "queued"
    assert not any(queue.paused for queue in store.run(calls.list_queues()))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "[::2]", ""]
)
def test_s4_a_name_that_is_not_ours_is_refused(service, host):
    """A name whose DNS was turned to 127.0.0.1 makes a browser send requests here as if to its own site."""
    answer = service.client().get(JOBS, headers={"host": host})

    assert (answer.status_code, code_of(answer)) == (421, "wrong_host")


@pytest.mark.parametrize(
    "host", ["evil@localhost", "localhost/evil", "localhost evil", "a\\@localhost", "localhost#a"]
)
def test_s4_what_is_no_host_name_is_refused(service, host):
    """`evil@localhost` was read as localhost; a proxy may have read another name."""
    answer = service.client().get(JOBS, headers={"host": host})

    assert (answer.status_code, code_of(answer)) == (400, "malformed")


@pytest.mark.parametrize(
    ("target", "status"), [("http://evil.example", 421), ("http://localhost", 200), ("HTTP://LOCALHOST", 200)]
)
def test_s4_an_absolute_target_names_the_same_server_as_the_host_header(service, target, status):
    with socket.create_connection((service.address.host, service.address.port)) as sock:
        sock.sendall(f"GET {target}/api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

        assert f" {status} " in sock.recv(4096).decode().partition("\r\n")[0]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:8000"])
def test_s4_every_name_of_this_machine_is_ours(service, host):
    assert service.client().get(JOBS, headers={"host": host}).status_code == 200


@pytest.mark.parametrize("listening", ["0.0.0.0", "::"])
def test_s4_the_address_a_connection_came_in_at_is_ours(database, listening):
    """Prometheus scrapes a pod by its address, which no `--allow-host` can know."""
    key = Service(database, LOOPBACK).key("read")  # without one it would not listen there
    where: dict[str, Any] = {
        "http": ListenAddress(listening, 0),
        "behind_proxy": True,
        "hosts": ("jobs.example.org",),
    }
    with serving(database, **where) as service:
        port = service.address.port
        with httpx2.Client(headers={"authorization": f"Bearer {key}"}, timeout=60) as client:
            said = {
                host: client.get(f"http://127.0.0.2:{port}/metrics", headers={"host": host}).status_code
                for host in ("127.0.0.2", f"127.0.0.2:{port}", "127.0.0.3", "192.0.2.1", "jobs.example.org.")
            }

    assert said == {
        "127.0.0.2": 200,
        f"127.0.0.2:{port}": 200,
        "127.0.0.3": 421,
        "192.0.2.1": 421,
        "jobs.example.org.": 200,
    }


def test_s4_two_host_headers_are_refused(service):
    with socket.create_connection((service.address.host, service.address.port)) as sock:
        sock.sendall(b"GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")

        assert b" 400 " in sock.recv(4096).partition(b"\r\n")[0]


def test_probes_need_neither_a_name_nor_a_key(service):
    for path in ("/healthz", "/readyz", "/health"):
        assert service.client().get(path, headers={"host": "10.1.2.3:8000"}).status_code == 200
