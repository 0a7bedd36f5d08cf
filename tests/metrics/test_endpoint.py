"""The small endpoint: it answers one page, and no request can hold up another."""

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator

import pytest

from faultline.errors import ConfigError
from faultline.metrics import endpoint as endpoints
from faultline.metrics.endpoint import MetricsAddress, MetricsEndpoint, serving
from tests.support import enqueue, state_of
from tests.worker.harness import PATIENCE, eventually, working


async def page(accept: str) -> tuple[bytes, str]:
    return b"faultline_up 1\n", "text/plain; version=0.0.4"


@pytest.fixture
def endpoint() -> Iterator[MetricsEndpoint]:
    with serving(MetricsAddress("127.0.0.1", 0), page) as endpoint:
        assert endpoint.wait(PATIENCE)
        yield endpoint


def ask(endpoint: MetricsEndpoint, path: str = "/metrics", method: str = "GET") -> tuple[int, bytes]:
    assert endpoint.port is not None
    conn = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=PATIENCE)
    conn.request(method, path)
    reply = conn.getresponse()
    return reply.status, reply.read()


def test_it_answers_one_page(endpoint):
    assert ask(endpoint) == (200, b"faultline_up 1\n")
    assert ask(endpoint, method="HEAD") == (200, b"")
    assert ask(endpoint, "/metrics?name[]=x")[0] == 200
    assert ask(endpoint, "/")[0] == 404
    assert ask(endpoint, "/metrics", "POST")[0] == 405


@pytest.mark.parametrize(
    "said", [b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00" * 3000, b"GET /metrics HTTP/1.1\r\n" * 1000]
)
def test_nonsense_is_hung_up_on(endpoint, said):
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=PATIENCE) as line:
        line.sendall(said)
        line.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            assert line.recv(1) == b""

    assert ask(endpoint)[0] == 200


def test_silent_connections_are_bounded(endpoint, monkeypatch):
    """S6: a crowd of silent connections is turned away, and let go after a while."""
    monkeypatch.setattr(endpoints, "REQUEST_SECONDS_MAX", 0.5)
    crowd = [socket.create_connection(("127.0.0.1", endpoint.port)) for _ in range(endpoints.ASKERS_MAX + 5)]

    eventually(lambda: ask(endpoint)[0] == 200)

    for line in crowd:
        line.close()


def test_m4_a_scrape_that_hangs_holds_no_job_up(database, store, monkeypatch):
    """Its page is never ready, its askers never go: jobs run as ever."""
    monkeypatch.setattr(endpoints, "REQUEST_SECONDS_MAX", 0.1)

    async def never(accept: str) -> tuple[bytes, str]:
        time.sleep(3600)  # noqa: ASYNC251 - not even its own loop turns
        return b"", ""

    ran = []

    async def quick_one() -> None:
        ran.append(1)

    with serving(MetricsAddress("127.0.0.1", 0), never) as endpoint, working(database, quick_one):
        assert endpoint.wait(PATIENCE)
        lines = [socket.create_connection(("127.0.0.1", endpoint.port)) for _ in range(3)]
        for line in lines:
            line.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        job = enqueue(store, task="quick_one")
        eventually(lambda: state_of(store, job) == "succeeded")
        for line in lines:
            line.close()


def test_m4_a_port_that_is_taken_is_tried_again_while_jobs_run(monkeypatch, caplog):
    monkeypatch.setattr(endpoints, "BIND_AGAIN_SECONDS", 0.05)
    holder = socket.create_server(("127.0.0.1", 0))
    port = holder.getsockname()[1]

    with serving(MetricsAddress("127.0.0.1", port), page) as endpoint:
        eventually(lambda: "tried again" in caplog.text)
        assert not endpoint.wait(0)
        holder.close()
        assert endpoint.wait(PATIENCE)
        assert ask(endpoint)[0] == 200

    assert caplog.text.count("tried again") == 1


@pytest.mark.parametrize("text", ["", "host", "host:", ":70000", "1:2:3", "host:+80", "::1:80", "host:８０"])
def test_what_is_no_address_is_refused_at_the_door(text):
    with pytest.raises(ConfigError, match="no address to listen on"):
        MetricsAddress.read(text)


def test_without_a_host_it_is_loopback():
    assert str(MetricsAddress.read("9187")) == "127.0.0.1:9187"
    assert str(MetricsAddress.read("0.0.0.0:9187")) == "0.0.0.0:9187"
    assert str(MetricsAddress.read("[::]:9187")) == "[::]:9187"
