"""Before the key: trailers, streams of health and reflection, and connections that never show one."""

import asyncio
import os
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from faultline.server.limits import Limits
from tests.http.serving import serving

MIB = 1_048_576
HEAD = (
    b"POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"transfer-encoding: chunked\r\n"
)
WRONG = b"authorization: Bearer flk_000000000000_" + b"A" * 43 + b"\r\n"


def memory() -> int:
    """What this process holds in memory, the server in it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


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


def asked(sock, request):
    """The answer with a list of jobs, whole."""
    sock.sendall(request)
    said = b""
    while b'"next":' not in said:
        said += (more := sock.recv(65_536))
        assert more, said
    return said


def trailers_without_end(service, head, sent):
    """A chunked body of nothing, and then trailers for as long as they are taken."""
    with connection(service) as sock:
        sock.sendall(head + b"\r\n0\r\n")
        line = b"x-%d: " % id(sock) + b"a" * 8_000 + b"\r\n"
        try:
            for _ in range(4_000):
                sock.sendall(line)
                sent.append(len(line))
        except OSError:
            pass


@pytest.mark.parametrize("head", [HEAD, HEAD + WRONG], ids=["no_key", "a_wrong_key"])
def test_trailers_are_dropped_and_their_bytes_are_bounded(database, head):
    with serving(database, trust_loopback=False) as service:
        trailers_without_end(service, head, [])
        before = memory()
        sent: list[int] = []
        crowd = [threading.Thread(target=trailers_without_end, args=(service, head, sent)) for _ in range(12)]
        most = 0
        for one in crowd:
            one.start()
        while any(one.is_alive() for one in crowd):
            most = max(most, memory() - before)
            time.sleep(0.02)

        assert sum(sent) < 100 * MIB
        assert most < 40 * MIB


def test_a_trailer_is_no_header(database):
    """It would come too late to be looked at, and say something else than the head."""
    with serving(database, trust_loopback=False) as service, connection(service) as sock:
        key = service.key("enqueue").encode()
        sock.sendall(
            HEAD + b"authorization: Bearer " + key + b"\r\nconnection: close\r\n\r\n"
            b'c\r\n{"task":"t"}\r\n0\r\nidempotency-key: late\r\nx-request-id: late\r\n\r\n'
        )
        said = answer(sock)
        ids = [service.client(service.key("read")).get("/api/v1/jobs").json()["jobs"][0]]

    assert b"201" in said
    assert b"late" not in said
    assert ids[0]["key"] is None


ANOTHER = b"connection: upgrade\r\nupgrade: h2c\r\n"
WITHIN = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "upgrade", [ANOTHER, ANOTHER.replace(b"h2c", b"websocket")], ids=["h2c", "websocket"]
)
@pytest.mark.parametrize(
    "body",
    [b"content-length: %d\r\n\r\n" % len(WITHIN), b"transfer-encoding: chunked\r\n\r\n"],
    ids=["length", "chunked"],
)
def test_a_body_is_never_taken_for_the_next_request(database, upgrade, body):
    """A proxy that passes the headers on knows of one request; the second answer goes to another client."""
    head = b"POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with serving(database, trust_loopback=False) as service, connection(service) as sock:
        with suppress(OSError):
            for part in (head + upgrade + body, WITHIN, WITHIN):
                sock.sendall(part)
                time.sleep(0.2)
        said = answer(sock)

    assert said.count(b"HTTP/1.1 ") == 1
    assert said.startswith(b"HTTP/1.1 400 ")


def test_a_request_that_asks_for_another_protocol_is_answered_in_this_one(database):
    """As `curl --http2` asks. It is the last of its connection."""
    with serving(database, trust_loopback=False) as service, connection(service) as sock:
        sock.sendall(WITHIN.removesuffix(b"\r\n") + ANOTHER + b"\r\n")
        said = answer(sock)

    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in said.lower()


def test_requests_that_come_all_at_once_are_bounded(database):
    """262 KB hold 14,000 requests, and each takes 2 KB in memory while it waits."""
    crowd = b"GET / HTTP/1.1\r\n\r\n" * 14_000
    with serving(database, trust_loopback=False) as service, ExitStack() as stack:
        before, most = memory(), 0
        for _ in range(12):
            with suppress(OSError):
                stack.enter_context(connection(service)).sendall(crowd)
            most = max(most, memory() - before)
        for _ in range(100):
            most = max(most, memory() - before)
            time.sleep(0.02)

        assert most < 40 * MIB


def test_a_few_requests_may_follow_each_other_without_waiting(database):
    with serving(database, trust_loopback=False) as service, connection(service) as sock:
        key = service.key("read").encode()
        ask = b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer " + key + b"\r\n"
        sock.sendall((ask + b"\r\n") * 16 + ask + b"connection: close\r\n\r\n")

        assert answer(sock).count(b'"next":') == 17


def test_a_connection_whose_requests_are_not_let_in_is_closed(database):
    with serving(database, Limits(unadmitted_seconds_max=1.0), trust_loopback=False) as service:
        key = service.key("read").encode()
        ask = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
        known = b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer " + key + b"\r\n\r\n"
        with connection(service) as probing, connection(service) as admitted:
            assert b"200" in asked(admitted, known)
            began = time.monotonic()
            with pytest.raises(OSError):  # noqa: PT011 - whichever way it hears of it
                while time.monotonic() - began < 20:
                    probing.sendall(ask)
                    if not probing.recv(65_536):
                        raise ConnectionResetError
                    time.sleep(0.1)
            assert time.monotonic() - began < 20
            assert b"200" in asked(admitted, known)


def test_one_address_has_so_many_connections_and_another_has_room(database):
    limits = Limits(connections_per_address=10, connections_max=100, head_seconds_max=60)
    with serving(database, limits) as service, ExitStack() as stack:
        crowd = [stack.enter_context(connection(service)) for _ in range(40)]
        gone = [sock for sock in crowd[:30] if b"overloaded" in answer(sock)]
        other = socket.create_connection(
            (service.address.host, service.address.port), timeout=20, source_address=("127.0.0.9", 0)
        )
        stack.enter_context(other)
        other.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")

        assert len(gone) == 30
        assert b"200" in other.recv(4096)


def test_a_proxy_that_was_named_may_have_more_connections(database):
    limits = Limits(connections_per_address=10, connections_max=100, head_seconds_max=60)
    with serving(database, limits, proxies=("127.0.0.0/8",)) as service, ExitStack() as stack:
        crowd = [stack.enter_context(connection(service)) for _ in range(40)]
        crowd[0].sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")

        assert b"200" in crowd[0].recv(4096)


async def refused(call):
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in call:
            pass
    return caught.value.code()


def test_health_watch_and_reflection_take_a_key_and_check_does_not(served):
    async def test(place):
        way = place.place(None)
        health = health_pb2_grpc.HealthStub(way.channel)
        reflection = reflection_pb2_grpc.ServerReflectionStub(way.channel)
        asked = health_pb2.HealthCheckRequest()
        listing = reflection_pb2.ServerReflectionRequest(list_services="")
        key = (("authorization", f"Bearer {await place.key_for('read')}"),)

        async def requests():
            yield listing

        assert (await health.Check(asked, timeout=60)).status == 1
        assert await refused(health.Watch(asked, timeout=60)) is grpc.StatusCode.UNAUTHENTICATED
        unknown = await refused(reflection.ServerReflectionInfo(requests(), timeout=60))
        assert unknown is grpc.StatusCode.UNAUTHENTICATED
        watching = health.Watch(asked, metadata=key, timeout=60)
        assert (await watching.read()).status == 1
        watching.cancel()
        async for told in reflection.ServerReflectionInfo(requests(), metadata=key, timeout=60):
            assert "faultline.v1.Jobs" in str(told) or "Jobs" in str(told)

    served(test, trust_loopback=False)


def test_a_grpc_connection_whose_calls_are_not_let_in_is_closed(served):
    async def test(place):
        stranger, known = place.place(None), place.place()
        health = health_pb2_grpc.HealthStub(stranger.channel)
        await known.submit()
        await health.Check(health_pb2.HealthCheckRequest(), timeout=60)
        connections = place.server.guard.connections
        async with asyncio.timeout(30):
            while not connections.closed["unadmitted"]:
                await asyncio.sleep(0.05)
                if not connections.closed["unadmitted"]:  # it keeps busy, and is closed all the same
                    await _tried(health.Check(health_pb2.HealthCheckRequest(), timeout=60))
        assert known.channel.get_state() is grpc.ChannelConnectivity.READY
        assert await known.submit() > 0

    served(test, trust_loopback=False, unadmitted_seconds_max=1.0)


async def _tried(call):
    with suppress(grpc.aio.AioRpcError):
        await call


def test_one_address_has_so_many_grpc_connections(served):
    async def test(place):
        silent = [await asyncio.open_connection("127.0.0.1", place.server.port) for _ in range(30)]
        for _, writer in silent:
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        ended = [asyncio.create_task(_until_closed(reader)) for reader, _ in silent]
        async with asyncio.timeout(30):
            while place.server.guard.connections.closed["address"] < 20:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            while sum(task.done() for task in ended) < 20:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        done, open_ = await asyncio.wait(ended, timeout=2)
        assert (len(done), len(open_)) == (20, 10)
        for _, writer in silent:
            writer.close()

    served(test, connections_per_address=10)


async def _until_closed(reader):
    try:
        while await reader.read(4096):
            pass
    except ConnectionError:
        pass


def test_connections_without_a_key_leave_room_for_others_from_wherever_they_come(served):
    async def test(place):
        hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
        crowd = []
        for number in range(24):
            here = (f"127.0.0.{2 + number % 8}", 0)
            _, writer = await asyncio.open_connection("127.0.0.1", place.server.port, local_addr=here)
            writer.write(hello)
            crowd.append(writer)
        connections = place.server.guard.connections
        async with asyncio.timeout(30):
            while connections.closed["unadmitted"] < 19:  # noqa: ASYNC110 - a look each second
                await asyncio.sleep(0.05)
        assert await place.place().submit() > 0
        for writer in crowd:
            writer.close()

    served(test, connections_max=24, unadmitted_max=5, unadmitted_seconds_max=600)
