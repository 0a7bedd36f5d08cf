"""Each request has one answer, and it is its own: whatever the same connection sends behind it."""

import asyncio
import json
import logging
import re
import secrets
import socket
import struct
import time
from contextlib import suppress

import pytest
import uvloop

from faultline.server.limits import Limits
from tests.http.serving import serving

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
READY = HEALTH.replace(b"healthz", b"readyz")
GARBAGE = b"GARBAGE\r\n\r\n"


def with_header(request, length):
    return request.removesuffix(b"\r\n") + b"x-big: " + b"a" * length + b"\r\n\r\n"


BEHIND = {
    "no_http": GARBAGE,
    "a_large_head": with_header(HEALTH, 40_000),
    "another_protocol": b"POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n"
    b"upgrade: h2c\r\ncontent-length: 2\r\n\r\n{}",
    "a_bad_body": b"POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n"
    b"transfer-encoding: chunked\r\n\r\nno number\r\n",
    "too_many": HEALTH * 40,
}


@pytest.fixture(scope="module")
def service(shared):
    with serving(shared, trust_loopback=False) as running:
        yield running


@pytest.fixture(scope="module")
def key(service):
    return service.key("admin").encode()


@pytest.fixture
def task():
    """A task that no other test names."""
    return f"t{secrets.token_hex(4)}"


def connection(service):
    return socket.create_connection((service.address.host, service.address.port), timeout=60)


def answer(sock):
    """Everything the server says until it hangs up."""
    said = b""
    with suppress(ConnectionResetError):
        while more := sock.recv(65_536):
            said += more
    return said


def post(key, task):
    body = b'{"task":"%s"}' % task.encode()
    return (
        b"POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"authorization: Bearer %s\r\ncontent-length: %d\r\n\r\n%s" % (key, len(body), body)
    )


def get(key, path):
    return b"GET %s HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer %s\r\n\r\n" % (path, key)


def statuses(said):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d\d\d) ", said)]


def jobs(service, key, task):
    """How many jobs of a task there are. A server that is busy is asked again, as it says."""
    client, give_up_at = service.client(key.decode()), time.monotonic() + 60
    while (found := client.get("/api/v1/jobs", params={"task": task})).status_code == 503:
        assert time.monotonic() < give_up_at, found.text
        time.sleep(1)
    return len(found.json()["jobs"])


def errors(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@LOOPS
@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND)
def test_a_request_is_answered_whatever_comes_behind_it(shared, task, caplog, run, behind):
    with serving(shared, run=run, trust_loopback=False) as service:
        key = service.key("admin").encode()
        with connection(service) as sock:
            sock.sendall(post(key, task) + behind)
            said = answer(sock)
        made = jobs(service, key, task)

    assert made == 1
    assert statuses(said)[0] == 201
    assert set(statuses(said)) <= {201, 200}
    assert not errors(caplog)


def test_a_request_is_answered_at_whatever_moment_garbage_follows(service, key, task):
    first = []
    for number in range(48):
        with connection(service) as sock:
            sock.sendall(post(key, task))
            time.sleep(number % 6 / 1_000)
            with suppress(OSError):
                sock.sendall(GARBAGE)
            first.append(statuses(answer(sock))[0])

    assert set(first) == {201}
    assert jobs(service, key, task) == 48


def test_a_large_head_in_parts_takes_no_answer_from_the_request_before_it(service, key):
    """It is the next request's, and not a trailer of the one that waits."""
    job = json.loads(answer_of_one(service, post(key, "t")))["id"]
    with connection(service) as sock:
        sock.sendall(get(key, b"/api/v1/jobs/%d/wait?seconds=2" % job))
        with suppress(OSError):
            for part in (HEALTH.removesuffix(b"\r\n") + b"x-big: ", *[b"a" * 10_000] * 8):
                sock.sendall(part)
                time.sleep(0.05)
        said = answer(sock)

    assert statuses(said) == [200]


def answer_of_one(service, request):
    with connection(service) as sock:
        sock.sendall(request.replace(b"host:", b"connection: close\r\nhost:", 1))
        return answer(sock).partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("behind", [GARBAGE, BEHIND["a_large_head"]], ids=["no_http", "a_large_head"])
@pytest.mark.parametrize("pause", [0.0, 0.5], ids=["at_once", "later"])
def test_a_stream_ends_by_closing(service, key, pause, behind):
    with connection(service) as sock:
        asked = get(key, b"/api/v1/events")
        for part in (asked, behind) if pause else (asked + behind,):
            sock.sendall(part)
            time.sleep(pause)
        began = time.monotonic()
        said = answer(sock)

    assert statuses(said) == ([200] if pause else [])  # at once: it had not begun
    assert not said.endswith(b"0\r\n\r\n")
    assert time.monotonic() - began < 30


def test_a_body_that_cannot_be_read_is_refused_at_once_and_nothing_is_done(service, key, task):
    head = post(key, task).partition(b"content-length")[0] + b"transfer-encoding: chunked\r\n\r\n"
    with connection(service) as sock:
        sock.sendall(head + b'5\r\n{"tas\r\n')
        time.sleep(0.2)
        sock.sendall(b"no number\r\n")
        began = time.monotonic()
        said = answer(sock)

    assert statuses(said) == [400]
    assert b"malformed" in said
    assert time.monotonic() - began < 15
    assert jobs(service, key, task) == 0


@pytest.mark.parametrize(
    "large",
    [
        with_header(HEALTH, 60_000),
        HEALTH.replace(b"healthz", b"healthz?" + b"a" * 60_000),
        HEALTH.removesuffix(b"\r\n") + b"a:\r\n" * 20_000 + b"\r\n",
    ],
    ids=["a_header", "a_query", "many_headers"],
)
@pytest.mark.parametrize("behind", [b"", HEALTH], ids=["alone", "and_another"])
def test_every_head_is_bounded(service, large, behind):
    with connection(service) as sock:
        sock.sendall(large + behind)
        said = answer(sock)

    assert statuses(said) == [431]
    assert b"head_too_large" in said


@LOOPS
def test_who_leaves_in_the_middle_of_it_is_no_error(shared, caplog, run):
    """A disconnect is no error during a request, nor with other requests that wait behind it."""
    with serving(shared, Limits(comment_seconds=0.1), run=run, trust_loopback=False) as service:
        key = service.key("admin").encode()
        job = json.loads(answer_of_one(service, post(key, "t")))["id"]
        for asked in (
            READY, post(key, "t"), post(key, "t").removesuffix(b"}"), get(key, b"/api/v1/events"),
            get(key, b"/api/v1/jobs/%d/wait?seconds=1" % job),
        ):  # fmt: skip
            for request in (asked, asked * 2, asked + READY, READY + with_header(asked, 40_000)):
                for pause in (0.0, 0.002, 0.05):
                    with connection(service) as sock:
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        sock.sendall(request)
                        time.sleep(pause)
        time.sleep(1.5)  # the long polls end

    assert not errors(caplog)


@LOOPS
def test_a_client_that_has_said_all_and_closes_its_side_is_answered(shared, task, run):
    with serving(shared, run=run, trust_loopback=False) as service:
        key = service.key("admin").encode()
        with connection(service) as sock:
            sock.sendall(post(key, task) * 2)
            sock.shutdown(socket.SHUT_WR)
            said = answer(sock)
        made = jobs(service, key, task)

    assert statuses(said) == [201, 201]
    assert b"connection: close" in said
    assert made == 2


@LOOPS
@pytest.mark.parametrize("path", ["events", "jobs/{}/wait?seconds=50"], ids=["stream", "wait"])
def test_what_lasts_ends_when_its_client_closes_its_side(shared, run, path):
    """A client that is gone looks the same, and would hold its place until the end of the wait."""
    with serving(shared, run=run, trust_loopback=False) as service:
        key = service.key("admin").encode()
        job = json.loads(answer_of_one(service, post(key, "t")))["id"]
        with connection(service) as sock:
            sock.sendall(get(key, f"/api/v1/{path.format(job)}".encode()))
            time.sleep(0.5)
            sock.shutdown(socket.SHUT_WR)
            began = time.monotonic()
            answer(sock)

    assert time.monotonic() - began < 30


@LOOPS
def test_a_body_whose_client_closes_its_side_is_not_waited_for(shared, task, caplog, run):
    with serving(shared, run=run, trust_loopback=False) as service:
        key = service.key("admin").encode()
        with connection(service) as sock:
            sock.sendall(post(key, task) + post(key, task).removesuffix(b"}"))
            sock.shutdown(socket.SHUT_WR)
            began = time.monotonic()
            said = answer(sock)
        with connection(service) as sock:
            sock.sendall(post(key, task).removesuffix(b"}"))
            sock.shutdown(socket.SHUT_WR)
            alone = answer(sock)
        took, made = time.monotonic() - began, jobs(service, key, task)

    assert statuses(said) == [201]
    assert statuses(alone) == []
    assert made == 1
    assert took < 15
    assert not errors(caplog)
