"""A scripted server: it hands a foreign worker its jobs, and records all its messages."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final
from uuid import uuid4

import grpc

from faultline.lab.conformance.verdict import Broken
from faultline.rpc.v1 import worker_pb2, worker_pb2_grpc

LEASE_MS: Final = 1_500
ROOM_MAX: Final = 50
PATIENCE: Final = 20.0
"""How long a worker may take to do what is expected of it."""

Judge = Callable[[worker_pb2.Result], "worker_pb2.Unsettled | None"]

_numbers: Final = count(1)


def accept(result: worker_pb2.Result) -> None:
    """Take every result."""


@dataclass
class GivenJob:
    """A job that was handed out, and the messages about it."""

    job: worker_pb2.Job
    given_at: float
    beats: list[float] = field(default_factory=list)
    results: asyncio.Queue[worker_pb2.Result] = field(default_factory=asyncio.Queue)
    pulse: int = worker_pb2.PULSE_HELD
    judge: Judge = accept

    async def result(self, seconds: float = PATIENCE) -> worker_pb2.Result:
        """The next result of it."""
        try:
            async with asyncio.timeout(seconds):
                return await self.results.get()
        except TimeoutError:
            raise Broken(f"no result of {self.job.task} came in {seconds:g} s") from None

    async def beaten(self, seconds: float = PATIENCE) -> None:
        """Until a beat names it."""
        await until(lambda: bool(self.beats), seconds, f"no beat for {self.job.task} came in {seconds:g} s")


class ScriptedStream:
    """One session of the worker under examination."""

    def __init__(self, exam: "ScriptedServer", context: Any) -> None:
        self.exam = exam
        self.context = context
        self.hello: worker_pb2.Hello | None = None
        self.asks: dict[int, tuple[worker_pb2.Ask, float]] = {}
        self.asked_at: list[float] = []
        self.over = asyncio.Event()
        self.cut_with: grpc.StatusCode | None = None
        self.said_goodbye = False
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        reading = asyncio.create_task(self._read())
        ticking = asyncio.create_task(self._tick())
        try:
            await self.over.wait()
            if self.cut_with is not None:
                await self.context.abort(self.cut_with, "the examiner cut this stream")
        finally:
            self.over.set()
            for task in (reading, ticking):
                task.cancel()

    async def _read(self) -> None:
        try:
            while (message := await self.context.read()) is not grpc.aio.EOF:
                await self._hear(message)
        finally:
            self.over.set()

    async def _hear(self, message: worker_pb2.FromWorker) -> None:
        kind = message.WhichOneof("message")
        if self.hello is None and kind != "hello":
            self.exam.blame(f"the first message of a session was {kind}, not hello")
        match kind:
            case "hello":
                await self._welcome(message.hello)
            case "ask":
                self._take_ask(message.ask)
            case "withdraw":
                await self._answer(message.withdraw.id)
            case "beat":
                await self._beaten(message.beat)
            case "results":
                await self._settled(message.results)
            case "ping":
                await self._say(pong=worker_pb2.Pong(id=message.ping.id))
            case "goodbye":
                self.said_goodbye = True
                self.over.set()

    async def _welcome(self, hello: worker_pb2.Hello) -> None:
        self.hello = hello
        if hello.protocol != 1:
            self.exam.blame(f"hello speaks protocol {hello.protocol}, not 1")
        if not hello.queues or not hello.slots:
            self.exam.blame("hello names no queues, or no slots")
        limits = worker_pb2.Limits(
            message_bytes_max=4_194_304,
            room_max=ROOM_MAX,
            wait_ms_max=5_000,
            items_max=1_000,
            unanswered_max=32,
        )
        await self._say(
            welcome=worker_pb2.Welcome(
                worker=1, protocol=1, server_version="conformance", lease_ms=LEASE_MS, timeout_ms=3_600_000,
                limits=limits, pings=True,
            )
        )  # fmt: skip

    def _take_ask(self, ask: worker_pb2.Ask) -> None:
        self.asked_at.append(time.monotonic())
        if not 1 <= ask.room <= ROOM_MAX:
            self.exam.blame(f"an Ask for {ask.room} jobs; the limit told was {ROOM_MAX}")
        if ask.except_tasks:
            self.exam.blame("an Ask excepts tasks; the limit told, except_tasks_max, was 0")
        if ask.id in self.asks:
            self.exam.blame(f"two Asks with the id {ask.id} at once")
        self.asks[ask.id] = (ask, time.monotonic())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            now = time.monotonic()
            for id, (ask, at) in list(self.asks.items()):
                # An Ask without a wait stays open for a moment, so that the script can answer it with a job.
                if now - at > max(0.2, min(ask.wait_ms, 5_000) / 1000):
                    await self._answer(id)

    async def _answer(self, id: int, *jobs: worker_pb2.Job) -> None:
        if id in self.asks:
            _, at = self.asks.pop(id)
            waited = int((time.monotonic() - at) * 1000)
            await self._say(assignments=worker_pb2.Assignments(id=id, jobs=jobs, waited_ms=waited))

    async def give(self, job: worker_pb2.Job) -> bool:
        """Answer an Ask with this job, if there is one."""
        for id in list(self.asks):
            await self._answer(id, job)
            return True
        return False

    async def _beaten(self, beat: worker_pb2.Beat) -> None:
        answers = [self.exam.pulse_of(lease) for lease in beat.leases]
        await self._say(beaten=worker_pb2.Beaten(id=beat.id, answers=answers))

    async def _settled(self, results: worker_pb2.Results) -> None:
        rest = []
        for index, result in enumerate(results.items):
            unsettled = self.exam.judged(result)
            if unsettled is not None:
                unsettled.index = index
                rest.append(unsettled)
        accepted = len(results.items) - len(rest)
        await self._say(settled=worker_pb2.Settled(id=results.id, accepted=accepted, rest=rest))

    async def drain(self) -> None:
        await self._say(notice=worker_pb2.Notice(drain=worker_pb2.Drain(grace_ms=10_000)))

    def cut(self, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> None:
        self.cut_with = code
        self.over.set()

    async def _say(self, **message: Any) -> None:
        # One at a time, as gRPC requires. The worker may be gone: the checks judge only its messages.
        async with self._turn:
            with contextlib.suppress(Exception):
                await self.context.write(worker_pb2.ToWorker(**message))


class ScriptedServer(worker_pb2_grpc.WorkersServicer):
    """The examiner: gives out jobs, remembers their leases, and receives the messages about them."""

    def __init__(self) -> None:
        self.streams: list[ScriptedStream] = []
        self.faults: list[str] = []
        self.outcomes_asked: list[int] = []
        self.ends: dict[int, int] = {}
        self._given: dict[tuple[int, int, bytes], GivenJob] = {}

    async def Session(self, request_iterator: Any, context: Any) -> None:
        stream = ScriptedStream(self, context)
        self.streams.append(stream)
        await stream.run()

    async def Outcome(self, request: worker_pb2.OutcomeRequest, context: Any) -> worker_pb2.OutcomeResponse:
        self.outcomes_asked += [lease.job_id for lease in request.leases]
        ends = [self.ends.get(lease.job_id, worker_pb2.END_GONE) for lease in request.leases]
        return worker_pb2.OutcomeResponse(ends=ends)  # type: ignore[arg-type]

    def blame(self, fault: str) -> None:
        """Record a fault that no lesson looks for."""
        self.faults.append(fault)

    @property
    def stream(self) -> ScriptedStream | None:
        """The session that is open now."""
        open_ones = [
            stream for stream in self.streams if not stream.over.is_set() and stream.hello is not None
        ]
        return open_ones[-1] if open_ones else None

    async def give(self, task: str, args: bytes = b"{}", **more: Any) -> GivenJob:
        """Hand out a job in answer to the next Ask."""
        number = next(_numbers)
        told = {
            "id": number, "token": 100 + number, "claim": uuid4().bytes, "task": task, "args": args,
            "attempt": 1, "max_attempts": 5, "lease_ms": LEASE_MS, "deadline_ms": 3_600_000,
            "created_at_us": 1_700_000_000_000_000, "key_seed": number.to_bytes(8),
        }  # fmt: skip
        given_up_at = time.monotonic() + PATIENCE
        while time.monotonic() < given_up_at:
            if (stream := self.stream) is not None and stream.hello is not None:
                job = worker_pb2.Job(**{**told, "queue": stream.hello.queues[0], **more})
                given = self._given[job.id, job.token, job.claim] = GivenJob(job, time.monotonic())
                if await stream.give(job):
                    return given
            await asyncio.sleep(0.02)
        raise Broken(f"no Ask came in {PATIENCE:g} s, so that no job could be given out")

    def pulse_of(self, lease: worker_pb2.Proof) -> Any:
        """What a beat for this lease is answered."""
        given = self._given.get((lease.job_id, lease.token, lease.claim))
        if given is None:
            self.blame(f"a beat for job {lease.job_id} with a token or claim that was never given out")
            return worker_pb2.PULSE_LOST
        given.beats.append(time.monotonic())
        return given.pulse

    def judged(self, result: worker_pb2.Result) -> worker_pb2.Unsettled | None:
        """What a result is answered; None if it is accepted."""
        given = self._given.get((result.job_id, result.token, result.claim))
        if given is None:
            self.blame(f"a result of job {result.job_id} with a token or claim that was never given out")
            return refused(result)
        given.results.put_nowait(result)
        return given.judge(result)


def refused(result: worker_pb2.Result) -> worker_pb2.Unsettled:
    """The answer of a fence."""
    refusal = worker_pb2.Refusal(
        job_id=result.job_id, token=result.token, reason=worker_pb2.REASON_TOKEN_MISMATCH,
        current_token=result.token + 1,
    )  # fmt: skip
    return worker_pb2.Unsettled(why=worker_pb2.WHY_REFUSED, refusal=refusal)


async def until(true: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Wait until something is true; Broken if it does not become so."""
    given_up_at = time.monotonic() + seconds
    while not true():
        if time.monotonic() > given_up_at:
            raise Broken(otherwise)
        await asyncio.sleep(0.02)
