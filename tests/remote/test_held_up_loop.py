"""A worker whose own loop was held up takes no server for silent: the answers are there, only unread."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from faultline.errors import CannotConnect
from faultline.remote.worker_stream import WorkerStream, silence_seconds
from faultline.rpc.v1 import worker_pb2 as rpc
from tests.remote.harness import Served

LEASE = 9.0
SILENCE = silence_seconds(LEASE)


def factory_of(loop: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """Loops differ in whether timers or answers come first after they were held up."""
    made: Any = asyncio if loop == "asyncio" else pytest.importorskip("uvloop")
    factory: Callable[[], asyncio.AbstractEventLoop] = made.new_event_loop
    return factory


def hold_up_with_a_ping(session: WorkerStream, seconds: float, *, unsent: bool) -> asyncio.Event:
    """Have the loop stand still as soon as a ping was put out, and before or after it is written."""
    put, held_up = session._outbox.put_nowait, asyncio.Event()

    def stand_still() -> None:
        if not held_up.is_set():
            time.sleep(seconds)
            held_up.set()

    def put_and_hold_up(said: rpc.FromWorker) -> None:
        loop = asyncio.get_running_loop()
        if unsent:
            loop.call_soon(stand_still)
            put(said)
        else:
            put(said)
            loop.call_soon(loop.call_soon, stand_still)

    outbox: Any = session._outbox
    outbox.put_nowait = put_and_hold_up
    return held_up


async def opened(served: Served) -> WorkerStream:
    """A session; on a busy machine gRPC may give up a connection before it is there."""
    hello = rpc.Hello(protocol=1, name="held up", queues=["default"], lease_ms=int(LEASE * 1000))
    async with asyncio.timeout(120):
        while True:
            session = WorkerStream(
                served.address, served.url.removeprefix("grpc://"), lambda notice: None, lambda: None
            )
            try:
                await session.open(hello)
            except CannotConnect:
                await session.close()
            else:
                return session


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("unsent", [True, False], ids=["before the ping is sent", "after the ping is sent"])
def test_a_server_that_answers_is_kept_after_the_loop_was_held_up(served: Served, loop, unsent):
    async def main() -> str | None:
        session = await opened(served)
        try:
            held_up = hold_up_with_a_ping(session, 1.5 * SILENCE, unsent=unsent)
            async with asyncio.timeout(60):
                await held_up.wait()
            await asyncio.sleep(SILENCE)
            return session.broken
        finally:
            await session.close()

    with asyncio.Runner(loop_factory=factory_of(loop)) as runner:
        assert runner.run(main()) is None
