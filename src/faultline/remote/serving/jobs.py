"""The service Jobs: what clients ask for."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import psycopg

from faultline.access import Caller, acting
from faultline.client.sender import Sender
from faultline.client.stores import Stores
from faultline.config import Settings
from faultline.errors import FaultlineError, InputError, JobNotFound, OutOfBounds
from faultline.job import JobInfo, JobState
from faultline.remote.serving.cargo import READ_SECONDS_MAX, Cargo, Load
from faultline.remote.serving.config import GrpcConfig
from faultline.remote.serving.gate import WAIT, Context, Gate, unary
from faultline.remote.serving.problems import TOO_MANY, TOO_SLOW, TurnedAway
from faultline.remote.serving.receiving import writes_itself
from faultline.remote.serving.translate import info_message, new_job
from faultline.rpc.v1 import client_pb2, client_pb2_grpc
from faultline.server.pacing import Pacing
from faultline.server.waits import Waits
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.rows import Outline
from faultline.store.run import AsyncStore
from faultline.worker.settle import as_text

NULL: Final = b"null"

ANSWER_SHARE: Final = 0.8
"""How much of a call's own deadline a wait may take: the rest is for the answer's way."""


class JobsService(client_pb2_grpc.JobsServicer):
    """Submit, get, wait, cancel."""

    def __init__(
        self, store: AsyncStore, config: GrpcConfig, gate: Gate, cancelled: Callable[[int], None]
    ) -> None:
        self.gate = gate
        self._store = store
        self._config = config
        self._cancelled = cancelled
        self._sender = Sender(_OneStore(store))
        self.answers = Cargo(config.answer_bytes_max, config.answer_bytes_per_key)
        self.waits = Waits(store.run, config.waits_max, _too_many_wait)

    @unary("enqueue")
    async def Submit(
        self, request: client_pb2.SubmitRequest, caller: Caller, context: Context
    ) -> client_pb2.SubmitResponse:
        if not request.HasField("job"):
            raise InputError("the request holds no job")
        new = await Pacing.of_this_loop().one(lambda: new_job(request.job), len(request.job.args))
        caller.require("enqueue", new.queue)
        return client_pb2.SubmitResponse(id=await self._sender.aenqueue(new))

    @unary("enqueue")
    async def SubmitMany(
        self, request: client_pb2.SubmitManyRequest, caller: Caller, context: Context
    ) -> client_pb2.SubmitManyResponse:
        if not 1 <= len(request.jobs) <= self._config.jobs_max:
            raise OutOfBounds(f"jobs holds 1 to {self._config.jobs_max:,} jobs; got {len(request.jobs):,}")
        asked = (new_job(one, f"jobs[{number}].") for number, one in enumerate(request.jobs))
        jobs = await Pacing.of_this_loop().all_of(asked, sum(len(one.args) for one in request.jobs))
        for queue in {new.queue for new in jobs}:
            caller.require("enqueue", queue)
        return client_pb2.SubmitManyResponse(ids=await self._sender.aenqueue_many(jobs))

    @writes_itself
    @unary("read")
    async def Get(
        self, request: client_pb2.GetRequest, caller: Caller, context: Context
    ) -> client_pb2.JobInfo:
        return await self._tell(calls.get_unread(request.id), caller, context)

    @writes_itself
    @unary("read", WAIT)
    async def Wait(
        self, request: client_pb2.WaitRequest, caller: Caller, context: Context
    ) -> client_pb2.JobInfo:
        left = (context.time_remaining() or 0.0) * ANSWER_SHARE
        # Without the payload: a hundred waits would hold it a hundred times for as long as they last.
        if not JobState((await self._outline(request.id, caller, "read")).state).ended:
            longest = self._config.client_wait_seconds_max
            await self.waits.end_of(request.id, min(request.wait_ms / 1000, left, longest))
        return await self._tell(calls.get_unread(request.id, confirmed=True), caller, context)

    @unary("operate")
    async def Cancel(
        self, request: client_pb2.CancelRequest, caller: Caller, context: Context
    ) -> client_pb2.CancelResponse:
        await self._outline(request.id, caller, "operate")
        reason = as_text(request.reason) or None
        async with acting(self._store, caller, reason) as act:
            await act.run(calls.cancel(request.id, reason))
        self._cancelled(request.id)
        with suppress(FaultlineError, psycopg.Error):  # for other replicas, and for workers that listen
            await self._store.run(calls.wake_cancelled([request.id]))
        return client_pb2.CancelResponse()

    async def _tell(self, look: Call[JobInfo | None], caller: Caller, context: Context) -> client_pb2.JobInfo:
        """Write a job's facts, which may weigh 2 MiB, where there is room for them: many are left unread."""
        left = min(context.time_remaining() or 0.0, READ_SECONDS_MAX)
        load = await self.answers.room(caller.key_id or caller.name, time.monotonic() + left * ANSWER_SHARE)
        if load is None:
            raise TurnedAway(TOO_MANY, "too many answers wait to be read; read them, and ask again")
        try:
            answer = _message(await self._find(look, caller, "read"))
            load.shrink(answer.ByteSize())
            await self._write(answer, load, context)
            return answer
        finally:
            load.release()

    async def _write(self, answer: client_pb2.JobInfo, load: Load, context: Context) -> None:
        writing = asyncio.ensure_future(context.write(answer))
        try:
            async with load.being_written(READ_SECONDS_MAX):
                await asyncio.shield(writing)
        except TimeoutError:
            load.release()
            self.gate.connections.hang_up(context.peer())
            await writing  # until then gRPC can send no status; as a rule the call is over before
            raise TurnedAway(TOO_SLOW, "the answer that was asked for is not being read") from None
        except BaseException:
            writing.cancel()
            raise

    async def _find(self, look: Call[JobInfo | None], caller: Caller, scope: str) -> JobInfo:
        """The job, if it is in a queue of the caller's; of any other it says the same as of none."""
        info = await self._store.run(look)
        if info is None or not caller.may(scope, info.queue):
            raise JobNotFound(f"there is no trace of job {look.args['job_id']}")
        return info

    async def _outline(self, job_id: int, caller: Caller, scope: str) -> Outline:
        """The same without its payload."""
        outline = await self._store.run(calls.outline(job_id))
        if outline is None or not caller.may(scope, outline.queue):
            raise JobNotFound(f"there is no trace of job {job_id}")
        return outline


class _OneStore(Stores):
    """For a sender that lives on one loop, with a store that is there already."""

    def __init__(self, store: AsyncStore) -> None:
        super().__init__(lambda: Settings(dsn=store.dsn))
        self._store = store

    def of_this_loop(self) -> AsyncStore:
        return self._store


def _too_many_wait(count: int) -> TurnedAway:
    return TurnedAway(TOO_MANY, f"{count} clients wait for jobs already; ask again in a moment")


def _message(info: JobInfo) -> client_pb2.JobInfo:
    """Its documents are passed on as they came: to read and write them would hold the loop for long."""
    return info_message(info, info.args or NULL, None if info.result == NULL else info.result)
