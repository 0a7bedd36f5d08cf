"""S6: slow, idle and greedy clients are refused by name, and the others are served meanwhile."""

import socket
import time
from contextlib import ExitStack

import pytest

from faultline.server.limits import MIB, Limits
from faultline.store import calls
from tests.http.serving import code_of, serving
from tests.support import new_job

SHORT = Limits(
    head_seconds_max=0.5, body_seconds_max=0.5, idle_seconds_max=1.0, connections_max=60,
    body_bytes_max=10_000, head_bytes_max=8_000, linger_seconds_max=0.5, send_seconds_max=0.5,
)  # fmt: skip
PIPELINED = 400
"""Answers of 40 kB, asked for at once: together several times what the kernel keeps for a slow reader."""
HEAD = (
    "POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    "authorization: Bearer {}\r\n"
)


@pytest.fixture(scope="module")
def service(database):
    """A server with short time limits, so that no test has to wait long for them to end."""
    with serving(database, SHORT) as running:
        yield running


@pytest.fixture(scope="module")
def key(service):
    return service.key("admin")


def connection(service):
    return socket.create_connection((service.address.host, service.address.port), timeout=60)


def answer(sock):
    """Everything the server says until it hangs up."""
    said = b""
    try:
        while more := sock.recv(65_536):
            said += more
    except ConnectionResetError:
        pass
    return said


def is_served(service):
    return service.client().get("/api/v1/jobs").status_code == 200


def test_s6_a_head_that_comes_drop_by_drop_is_cut_off(service):
    with connection(service) as slow:
        slow.sendall(b"GET /api/v1/jobs HTTP/1.1\r\n")
        began = time.monotonic()
        try:
            for letter in b"x-slow: " + b"a" * 200:
                slow.sendall(bytes([letter]))
                time.sleep(0.02)
        except OSError:
            pass
        said = answer(slow)

    assert b"408" in said
    assert b"too_slow" in said
    assert time.monotonic() - began < 15
    assert is_served(service)


def test_s6_a_connection_that_says_nothing_is_closed(service):
    with connection(service) as silent:
        assert b"too_slow" in answer(silent)


def test_s6_a_body_that_comes_too_slowly_is_refused(service, key):
    with connection(service) as slow:
        slow.sendall(f"{HEAD.format(key)}content-length: 100\r\n\r\n".encode() + b'{"task"')
        said = answer(slow)

    assert b"408" in said
    assert b"too_slow" in said
    assert is_served(service)


def test_s6_a_head_without_end_is_refused(service):
    with connection(service) as greedy:
        greedy.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\nx-big: " + b"a" * 7_000)
        try:
            for _ in range(50):
                greedy.sendall(b"a" * 10_000)
        except OSError:
            pass
        said = answer(greedy)

    assert b"head_too_large" in said or said == b""  # the system may throw an answer away that came too early
    assert is_served(service)


def test_s6_a_head_that_is_too_large_at_once_is_refused(service):
    with connection(service) as greedy:
        greedy.sendall(
            b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\nx-big: " + b"a" * 9_000 + b"\r\n\r\n"
        )

        assert b"head_too_large" in answer(greedy)


def test_s6_more_connections_than_there_is_room_for_push_out_the_idle_ones(service):
    with ExitStack() as stack:
        idle = [stack.enter_context(connection(service)) for _ in range(150)]

        assert b"overloaded" in answer(idle[0])
        assert is_served(service)


def test_s6_a_connection_that_waits_between_requests_makes_room_without_a_word(service):
    """Its client might take what it is told for the answer to its next question."""
    with ExitStack() as stack:
        kept = stack.enter_context(connection(service))
        kept.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        said = b""
        while b'{"status":"ok"}' not in said:
            said += kept.recv(4096)
        for _ in range(100):
            stack.enter_context(connection(service))

        assert answer(kept) == b""


def test_s6_requests_that_were_refused_hold_no_room_while_they_are_heard_out(database):
    """Otherwise a client without a key can keep all others out with bodies that never end."""
    limits = Limits(connections_max=20, linger_seconds_max=30)
    with serving(database, limits) as own, ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(connection(own)).sendall(
                f"{HEAD.format('flk_wrong')}content-length: 100\r\n\r\n".encode() + b"{"
            )

        assert is_served(own)


def test_s6_where_all_connections_are_being_served_the_next_one_is_told(database):
    limits = Limits(connections_max=3)
    with serving(database, limits) as own, ExitStack() as stack:
        key = own.key("enqueue", "read")
        job = own.client(key).post("/api/v1/jobs", json={"task": "t"}).json()["id"]
        own.close()
        ask = f"GET /api/v1/jobs/{job}/wait?seconds=20 HTTP/1.1\r\nhost: localhost\r\n"
        for _ in range(3):
            waiting = stack.enter_context(connection(own))
            waiting.sendall(f"{ask}authorization: Bearer {key}\r\n\r\n".encode())
        time.sleep(3.0)  # one whose request was not read yet would make room
        late = stack.enter_context(connection(own))
        late.sendall(b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n\r\n")

        assert b"503" in (said := answer(late))
        assert b"overloaded" in said


def test_s6_a_client_that_does_not_read_its_answers_is_cut_off(service):
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(20)
        deaf.connect((service.address.host, service.address.port))
        ask = b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
        deaf.sendall(ask * PIPELINED)
        time.sleep(4.0)  # eight times as long as the server waits
        read = len(answer(deaf))

    one = len(service.client().get("/api/v1/openapi.json").content)
    assert read < PIPELINED * one
    assert is_served(service)


def test_what_is_no_http_is_refused_by_name(service):
    for nonsense in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 60,
        b"hello\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
    ):
        with connection(service) as sock:
            sock.sendall(nonsense)

            assert b"malformed" in answer(sock)
    assert is_served(service)


@pytest.mark.parametrize("how", ["content-length", "chunked"])
def test_a_body_past_the_limit_is_refused_while_it_is_still_being_sent(service, key, how):
    with connection(service) as greedy:
        if how == "content-length":
            greedy.sendall(f"{HEAD.format(key)}content-length: 1000000\r\n\r\n".encode())
            greedy.sendall(b"a" * 20_000)
        else:
            greedy.sendall(f"{HEAD.format(key)}transfer-encoding: chunked\r\n\r\n".encode())
            for _ in range(5):
                greedy.sendall(b"1000\r\n" + b"a" * 4096 + b"\r\n")
        said = answer(greedy)

    assert b"413" in said
    assert b"too_large" in said
    assert is_served(service)


def test_the_largest_body_is_taken_and_one_byte_more_is_not(service, key):
    client = service.client(key)
    empty = len('{"task":"t","args":{"a":""}}')

    def sized(size):
        body = '{"task":"t","args":{"a":"%s"}}' % ("x" * (size - empty))
        return client.post(
            "/api/v1/jobs", content=body.encode(), headers={"content-type": "application/json"}
        )

    assert sized(10_000).status_code == 201
    assert sized(10_001).status_code == 413


def test_a_packed_body_is_refused_unopened(service, key):
    answer = service.client(key).post(
        "/api/v1/jobs", content=b"\x1f\x8b" + b"a" * 100,
        headers={"content-type": "application/json", "content-encoding": "gzip"},
    )  # fmt: skip

    assert (answer.status_code, code_of(answer)) == (415, "not_json")


def test_a_get_with_a_body_is_refused(service):
    answer = service.client().request("GET", "/api/v1/jobs", content=b"{}")

    assert (answer.status_code, code_of(answer)) == (400, "malformed")


def test_a_body_that_is_no_json_is_refused(service, key):
    client = service.client(key)
    for path in ("/api/v1/jobs", "/api/v1/jobs/batch", "/api/v1/jobs/bulk", "/api/v1/jobs/1/cancel"):
        answer = client.post(path, content=b'{"', headers={"content-type": "application/json"})

        assert (answer.status_code, code_of(answer)) == (400, "malformed"), path


def test_more_calls_a_second_than_a_key_may_make_are_refused_with_how_long_to_wait(database):
    with serving(database, Limits(calls_per_second_per_key=1)) as own:
        client = own.client(own.key("read"))
        answers = [client.get("/api/v1/jobs") for _ in range(20)]

        refused = [answer for answer in answers if answer.status_code != 200]
        assert answers[0].status_code == 200
        assert {code_of(answer) for answer in refused} == {"too_many"}
        assert {answer.headers["retry-after"] for answer in refused} == {"1"}


def test_answers_that_are_not_read_take_a_share_of_their_key_alone(database, store):
    """One key that read none of its answers took hundreds of megabytes."""
    large = store.run(calls.enqueue(new_job(args='{"a": "' + "x" * 1_000_000 + '"}')))
    path = f"/api/v1/jobs/{large}"
    limits = Limits(answer_bytes_per_key=2 * MIB, answer_seconds_max=2.0)
    with serving(database, limits) as service, ExitStack() as held:
        key, other = service.key("read"), service.client(service.key("read"))
        mine = service.client(key)
        head = f"GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n"
        for _ in range(8):
            sock = held.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            sock.connect((service.address.host, service.address.port))
            sock.sendall(head.encode() * 4)  # the kernel takes some of the answers
        began = time.monotonic()
        while (told := mine.get(path)).status_code == 200 and time.monotonic() - began < 10:
            pass
        assert (told.status_code, code_of(told)) == (429, "too_many")
        for later in (f"{path}/ledger", f"{path}/timeline", f"{path}/wait?seconds=0"):
            assert mine.get(later).status_code == 429, later
        assert other.get(path).status_code == 200

        held.close()
        assert mine.get(path).status_code == 200
