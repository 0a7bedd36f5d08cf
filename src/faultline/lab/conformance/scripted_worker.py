"""A scripted worker: the checks of a server send its messages one by one."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from faultline.lab.conformance.verdict import Broken
from faultline.rpc.v1 import client_pb2, client_pb2_grpc, worker_pb2, worker_pb2_grpc

CALL_SECONDS: Final = 30.0
HEAR_SECONDS: Final = 30.0
LEASE_MS: Final = 5_000


@dataclass
class ServerUnderTest:
    """A server to be checked, a key to show, and a queue that no other client uses."""

    channel: grpc.aio.Channel
    key: str | None = field(default=None, repr=False)
    queue: str = field(default_factory=lambda: f"conformance-{secrets.token_hex(6)}")

    def __post_init__(self) -> None:
        self.workers = worker_pb2_grpc.WorkersStub(self.channel)  # type: ignore[no-untyped-call]
        self.jobs = client_pb2_grpc.JobsStub(self.channel)  # type: ignore[no-untyped-call]

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return () if self.key is None else (("authorization", f"Bearer {self.key}"),)

    async def ask(self, call: Any, request: Any, seconds: float = CALL_SECONDS) -> Any:
        """One unary call, with the key and a deadline."""
        return await call(request, metadata=self.metadata, timeout=seconds)

    async def submit(self, **asked: Any) -> int:
        """Put a job in the queue of the checks, and give its id."""
        job = client_pb2.NewJob(**{"task": "conformance.echo", "queue": self.queue, **asked})
        answer = await self.ask(self.jobs.Submit, client_pb2.SubmitRequest(job=job))
        return int(answer.id)

    async def info(self, job_id: int) -> client_pb2.JobInfo:
        """The job as it is now."""
        answer: client_pb2.JobInfo = await self.ask(self.jobs.Get, client_pb2.GetRequest(id=job_id))
        return answer

    def hello(self, **said: Any) -> worker_pb2.Hello:
        """How the checks say hello."""
        told = {
            "protocol": 1, "name": "conformance", "host": "conformance", "pid": 1, "version": "conformance/1",
            "queues": [self.queue], "slots": 10, "lease_ms": LEASE_MS,
        }  # fmt: skip
        return worker_pb2.Hello(**{**told, **said})

    def stream(self) -> "ScriptedWorker":
        """A stream without any message yet."""
        return ScriptedWorker(self, self.workers.Session(metadata=self.metadata))

    @asynccontextmanager
    async def session(self, **said: Any) -> AsyncIterator["ScriptedWorker"]:
        """A session that was welcomed; cut when the block ends."""
        talk = self.stream()
        try:
            await talk.say(hello=self.hello(**said))
            talk.welcome = (await talk.hear("welcome")).welcome
            yield talk
        finally:
            talk.cut()


class ScriptedWorker:
    """One stream: send a message, read an answer of a given kind."""

    def __init__(self, place: ServerUnderTest, call: Any) -> None:
        self.place = place
        self.call = call
        self.welcome = worker_pb2.Welcome()
        self._heard: list[worker_pb2.ToWorker] = []
        self._ids = 0

    async def say(self, **message: Any) -> None:
        """Send one message."""
        try:
            await self.call.write(worker_pb2.FromWorker(**message))
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
            raise Broken(f"the stream has ended: {await self.call.code()}") from None

    async def hear(self, kind: str, seconds: float = HEAR_SECONDS) -> worker_pb2.ToWorker:
        """The next message of this kind; others wait until they are asked for."""
        for place, earlier in enumerate(self._heard):
            if earlier.WhichOneof("message") == kind:
                return self._heard.pop(place)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    heard: Any = await self.call.read()
                    if heard is grpc.aio.EOF:
                        raise Broken(f"the stream ended with {await self.call.code()} before any {kind}")
                    message: worker_pb2.ToWorker = heard
                    if message.WhichOneof("message") == kind:
                        return message
                    self._heard.append(message)
        except TimeoutError:
            raise Broken(f"no {kind} came in {seconds:g} s") from None

    async def ask(self, room: int = 1, wait_ms: int = 0, **more: Any) -> worker_pb2.Assignments:
        """Ask for work, and read the answer."""
        self._ids += 1
        await self.say(ask=worker_pb2.Ask(id=self._ids, room=room, wait_ms=wait_ms, **more))
        answer = (await self.hear("assignments", HEAR_SECONDS + wait_ms / 1000)).assignments
        if answer.id != self._ids:
            raise Broken(f"Ask {self._ids} was answered with the id {answer.id}")
        return answer

    async def take(self, **more: Any) -> worker_pb2.Job:
        """One job, which must be there, or come soon."""
        (job, *others) = (await self.ask(**{"wait_ms": 5_000, **more})).jobs or [None]
        if job is None or others:
            raise Broken("one job was there to be had, and was not given out")
        return job

    async def beat(self, *proofs: worker_pb2.Proof) -> list[int]:
        """Beat for these leases; one answer for each."""
        self._ids += 1
        await self.say(beat=worker_pb2.Beat(id=self._ids, leases=proofs))
        beaten = (await self.hear("beaten")).beaten
        if beaten.id != self._ids or len(beaten.answers) != len(proofs):
            raise Broken(f"a beat for {len(proofs)} leases was answered with {len(beaten.answers)} answers")
        return list(beaten.answers)

    async def settle(self, *items: worker_pb2.Result) -> worker_pb2.Settled:
        """Say how attempts ended."""
        self._ids += 1
        await self.say(results=worker_pb2.Results(id=self._ids, items=items))
        settled = (await self.hear("settled")).settled
        if settled.id != self._ids or settled.accepted + len(settled.rest) != len(items):
            raise Broken(f"{len(items)} results: {settled.accepted} accepted and {len(settled.rest)} named")
        return settled

    async def ended(self, seconds: float = HEAR_SECONDS) -> grpc.StatusCode:
        """The status the stream ends with."""
        try:
            async with asyncio.timeout(seconds):
                while await self.call.read() is not grpc.aio.EOF:
                    pass
        except grpc.aio.AioRpcError as error:
            code: grpc.StatusCode = error.code()
            return code
        except TimeoutError:
            raise Broken(f"the stream did not end in {seconds:g} s") from None
        ended: grpc.StatusCode = await self.call.code()
        return ended

    def cut(self) -> None:
        """End it without a message, as a dead worker does."""
        self.call.cancel()


def proof(job: worker_pb2.Job, **other: Any) -> worker_pb2.Proof:
    """The proof of a job's lease, or one that is wrong on purpose."""
    return worker_pb2.Proof(**{"job_id": job.id, "token": job.token, "claim": job.claim, **other})


def result(job: worker_pb2.Job, outcome: Any = None, **other: Any) -> worker_pb2.Result:
    """How an attempt at a job ended; by default Done without a result."""
    outcome = worker_pb2.Done() if outcome is None else outcome
    named = {"job_id": job.id, "token": job.token, "claim": job.claim, **other}
    return worker_pb2.Result(**{type(outcome).__name__.lower(): outcome}, **named)


def done(job: worker_pb2.Job, text: bytes = b"") -> worker_pb2.Result:
    """A success."""
    return result(job, worker_pb2.Done(result=text))
