"""A message is read once its caller is known: before that nothing of it is kept."""

import asyncio
import struct
from typing import Any, cast

import grpc
import pytest

from faultline.rpc.v1 import client_pb2
from faultline.server.grpc.guard.message_bounds import LARGE_BYTES, MessageBound, UnparsedMessage
from faultline.server.grpc.guard.message_reader import MessageReader
from faultline.server.problems import RequestRefused

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS = 0, 1, 3, 4
END_STREAM, END_HEADERS = 1, 4
SOON = 15.0


def frame(kind: int, payload: bytes = b"", flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def headers(path: str, **named: str) -> bytes:
    """Header fields as HTTP/2 writes them, none of them compressed."""
    usual = {":method": "POST", ":scheme": "http", ":authority": "x", ":path": path}
    said = b""
    for name, value in {**usual, "content-type": "application/grpc", "te": "trailers", **named}.items():
        said += b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    return said


async def ends(port: int, **named: str) -> bool:
    """Whether a call is ended whose message of 4 MB has begun and never comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    begun = b"\0" + struct.pack(">I", 4_000_000) + b"\0" * 1_000
    writer.write(
        PREFACE + frame(SETTINGS) + frame(HEADERS, headers(**named), END_HEADERS, 1)
        + frame(DATA, begun, 0, 1)
    )  # fmt: skip
    try:
        async with asyncio.timeout(SOON):
            while True:
                head = await reader.readexactly(9)
                await reader.readexactly(int.from_bytes(head[:3], "big"))
                if head[3] == RESET or (head[3] == HEADERS and head[4] & END_STREAM):
                    return True
    except TimeoutError:
        return False
    finally:
        writer.close()


@pytest.mark.parametrize(
    "path",
    [
        "/faultline.rpc.v1.Jobs/SubmitMany",
        "/faultline.rpc.v1.Workers/Heartbeat",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
    ],
)
def test_a_call_without_a_key_is_ended_before_its_message_is_there(served, path):
    async def test(place):
        assert await ends(place.server.port, path=path)

    served(test, trust_loopback=False)


def test_a_call_whose_message_never_comes_is_ended(served):
    async def test(place):
        path = "/faultline.rpc.v1.Jobs/SubmitMany"
        assert await ends(place.server.port, path=path, authorization=f"Bearer {place.key}")

    served(test, message_seconds_max=1.0)


class Slow:
    """A call whose message comes when told."""

    def __init__(self, size=0):
        self.began = asyncio.Event()
        self.comes = asyncio.Event()
        self._size = size

    async def read(self):
        self.began.set()
        await self.comes.wait()
        asked = client_pb2.SubmitRequest(job=client_pb2.NewJob(args=b"x" * self._size))
        return UnparsedMessage(
            asked.SerializeToString(), client_pb2.SubmitRequest.FromString, MessageBound(2 * LARGE_BYTES)
        )


def test_large_messages_of_one_key_wait_for_each_other_and_for_no_other_key():
    async def test():
        receiving, answered = MessageReader(4, 2, SOON), asyncio.Event()

        async def call(context, name):
            async with receiving.message(context, name):
                await answered.wait()

        crowd, other, small = [Slow(LARGE_BYTES) for _ in range(3)], Slow(LARGE_BYTES), Slow()
        tasks = [asyncio.create_task(call(one, "greedy")) for one in crowd]
        tasks += [asyncio.create_task(call(other, "other")), asyncio.create_task(call(small, "other"))]
        for one in (*crowd, other, small):
            one.comes.set()
        await asyncio.sleep(0.1)

        assert [one.began.is_set() for one in (*crowd, other, small)] == [True, True, False, True, True]
        answered.set()
        await asyncio.gather(*tasks)
        assert crowd[2].began.is_set()
        assert not receiving._of_name

    asyncio.run(test())


def test_a_call_that_ends_without_a_message_is_malformed():
    class Empty:
        async def read(self):
            return grpc.aio.EOF

    async def test():
        receiving, empty = MessageReader(1, 1, SOON), cast(Any, Empty())
        for _ in range(3):  # and gives its place back
            with pytest.raises(RequestRefused, match="malformed"):
                async with receiving.message(empty, "a key"):
                    raise AssertionError

    asyncio.run(test())
