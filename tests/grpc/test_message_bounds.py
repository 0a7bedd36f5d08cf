"""What a message costs is bounded before it is parsed, and a refused call leaves nothing behind."""

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from faultline.lab.conformance.status_details import problem_in
from faultline.rpc.v1 import client_pb2, worker_pb2
from faultline.server.grpc import GrpcConfig
from faultline.server.grpc.guard.message_bounds import BoundedField, MessageBound, UnparsedMessage, bounds
from faultline.server.problems import RequestRefused

Code = grpc.StatusCode
MIB = 1_048_576
GROWTH_MAX = 80 * MIB
ROUNDS = 60
HEALTH = "/grpc.health.v1.Health/Check"
SUBMIT = "/faultline.rpc.v1.Jobs/Submit"


def memory() -> int:
    """What this process holds in memory, the server in it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def refused(channel: grpc.aio.Channel, method: str, raw: bytes, key: str | None = None) -> Any:
    """The error of a call that is refused."""
    shown = () if key is None else (("authorization", f"Bearer {key}"),)
    call: Any = channel.unary_unary(method)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(raw, metadata=shown, timeout=30)
    return caught.value


async def grown(channel: grpc.aio.Channel, method: str, raw: bytes, key: str | None = None) -> int:
    """Bytes that refused calls leave in memory while nothing collects cycles."""
    for _ in range(5):  # what is kept for the next one is there afterwards
        await refused(channel, method, raw, key)
    gc.collect()
    gc.disable()
    try:
        before = memory()
        for _ in range(ROUNDS):
            await refused(channel, method, raw, key)
        await asyncio.sleep(0.2)
        return memory() - before
    finally:
        gc.enable()


def test_refused_calls_leave_no_message_behind(served):
    """Without a key as with one: a cycle would keep each until the collector comes by, at 4 MB a call."""

    async def test(place):
        asked = client_pb2.SubmitRequest(job=client_pb2.NewJob(task="t", args=b"x" * 4_000_000))

        assert await grown(place.channel(), SUBMIT, asked.SerializeToString(), place.key) < GROWTH_MAX
        assert await grown(place.channel(), HEALTH, b"\x0a\x80\x92\xf4\x01" + b"x" * 4_000_000) < GROWTH_MAX

    served(test, trust_loopback=False)


def test_a_probe_asks_in_a_few_bytes(served):
    async def test(place):
        channel = place.channel()
        error = await refused(channel, HEALTH, b"\x0a\x80\x10" + b"x" * 2_048)
        assert (error.code(), problem_in(error).code) == (Code.RESOURCE_EXHAUSTED, "too_large")
        assert (await refused(channel, HEALTH, b"\x0a\x03abc")).code() is Code.NOT_FOUND
        assert await channel.unary_unary(HEALTH)(b"", timeout=30) == b"\x08\x01"

    served(test, trust_loopback=False)


async def peak_of(working: Awaitable[Any]) -> int:
    """Bytes that this process grew by, at most, while something was done."""
    before = most = memory()
    task = asyncio.ensure_future(working)
    while not task.done():
        await asyncio.sleep(0.005)
        most = max(most, memory())
    await task
    return max(most, memory()) - before


GROWING: dict[str, Callable[[], bytes]] = {
    "Jobs/SubmitMany": lambda: b"\x0a\x00" * 2_000_000,
    "Workers/Start": lambda: b"\x3a\x00" * 2_000_000,
    "Workers/Heartbeat": lambda: worker_pb2.HeartbeatRequest(
        beat=worker_pb2.Beat(leases=[{}] * 1_000_000)
    ).SerializeToString(),
    "Workers/Settle": lambda: worker_pb2.SettleRequest(
        results=worker_pb2.Results(items=[{}] * 1_000_000)
    ).SerializeToString(),
    "Workers/Figures": lambda: b"\x0a\x00" * 2_000_000,
}


@pytest.mark.parametrize("name", GROWING)
def test_a_message_that_would_grow_is_refused_before_it_is_parsed(served, name):
    """Two bytes of it are an item, of 85 times as many bytes once parsed."""
    raw = GROWING[name]()

    async def test(place):
        channel, method = place.channel(), f"/faultline.rpc.v1.{name}"
        for _ in range(3):
            assert await peak_of(refused(channel, method, raw, place.key)) < GROWTH_MAX
        assert problem_in(await refused(channel, method, raw, place.key)).code == "too_large"

    served(test)


def _within(name: str, message: Any) -> Any:
    return UnparsedMessage(
        message.SerializeToString(), type(message).FromString, bounds(CONFIG)[name]
    ).parsed()


CONFIG = GrpcConfig(address="127.0.0.1:0")
LONG = 2**63 - 1
ITEMS = range(CONFIG.items_max)
QUEUES = [f"{number:04}" + "q" * 59 for number in range(1_000)]
TASKS = [f"{number:04}" + "t" * 124 for number in range(CONFIG.except_tasks_max)]
PROOFS = [worker_pb2.Proof(job_id=LONG, token=LONG - number, claim=bytes(16)) for number in ITEMS]
NAMES = [worker_pb2.LeaseName(job_id=LONG, token=LONG - number) for number in ITEMS]
ASK = worker_pb2.Ask(
    id=LONG, room=1_000, wait_ms=30_000, queues=QUEUES, claim=bytes(16), trace="x" * 600, except_tasks=TASKS,
    begins=[worker_pb2.Begin(lane=2**31 - 1, place=LONG) for _ in range(4_000)],
)  # fmt: skip
BEAT = worker_pb2.Beat(id=LONG, leases=PROOFS)
HELLO = worker_pb2.Hello(protocol=1, queues=QUEUES, tasks=[f"{n}" + "t" * 60 for n in range(2_000)])
RESULTS = worker_pb2.Results(
    id=LONG,
    items=[
        worker_pb2.Result(
            job_id=LONG, token=LONG - number, claim=bytes(16),
            crashed=worker_pb2.Crashed(error="x" * 3_000, signature="x" * 200, alone=True, delay_ms=LONG),
        ) for number in ITEMS
    ],
)  # fmt: skip
JOB = client_pb2.NewJob(
    task="t" * 128, args=b"{}", queue="q" * 63, priority=100, delay_ms=1, max_attempts=9, key="k" * 100
)
LARGEST = {
    "Submit": client_pb2.SubmitRequest(job=client_pb2.NewJob(task="t", args=b"x" * MIB)),
    "SubmitMany": client_pb2.SubmitManyRequest(jobs=[JOB] * CONFIG.batch_jobs_max),
    "Start": HELLO,
    "Lease": worker_pb2.LeaseRequest(worker=1, ask=ASK, lease_ms=1, timeout_ms=1),
    "Heartbeat": worker_pb2.HeartbeatRequest(worker=1, beat=BEAT, lease_ms=1),
    "Settle": worker_pb2.SettleRequest(worker=1, results=RESULTS),
    "Outcome": worker_pb2.OutcomeRequest(leases=PROOFS),
    "Figures": worker_pb2.FiguresRequest(granted=NAMES, refused=NAMES),
}
SAID: dict[str, Any] = {"hello": HELLO, "ask": ASK, "beat": BEAT, "results": RESULTS}


def test_what_the_limits_allow_is_within_the_bounds_of_a_message():
    for name, message in LARGEST.items():
        assert _within(name, message) == message
    for kind, said in SAID.items():
        whole = worker_pb2.FromWorker(**{kind: said})
        assert _within("Session", whole) == whole


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"\x0a\x00" * 11, "too_large"),
        (b"\x0b\x0c" * 6, "too_large"),  # groups
        (b"\xd5\x01" + bytes(4) + b"\xd1\x01" + bytes(8) + b"\x0a\x00" * 9, "too_large"),
        (b"\x12\x16" + b"\x0a\x00" * 11, "too_large"),  # within a message
        (b"\x1a\x04" + b"\x22\x00" * 2 + b"\x1a\x12" + b"\x22\x00\x2a\x00" * 4 + b"\x08\x01", "too_large"),
        (b"\x0a\x00" * 80, "too_large"),
        (b"\x08" + b"\xff" * 60, "malformed"),
        (b"\xff" * 60, "malformed"),
        (b"\x0a\xff\xff\xff\x7f" + b"x" * 60, "malformed"),
    ],
)
def test_fields_are_counted_wherever_they_stand(raw, code):
    bound = MessageBound(100, 10, {2: BoundedField(), 3: BoundedField(bytes_min=10)})
    with pytest.raises(RequestRefused, match=code):
        UnparsedMessage(raw, worker_pb2.HeartbeatRequest.FromString, bound).parsed()


def test_fields_of_what_is_only_bytes_are_not_counted():
    bound = MessageBound(100, 10, {2: BoundedField(), 3: BoundedField(bytes_min=10)})
    for raw in (b"\x0a\x16" + b"\x0a\x00" * 11, b"\x1a\x08" + b"\x22\x00" * 4 + b"\x0a\x00" * 9):
        bound.check(raw)
