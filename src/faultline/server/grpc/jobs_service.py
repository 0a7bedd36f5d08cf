"""The service Jobs: the calls of clients."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import psycopg

from faultline.errors import FaultlineError, InputError, JobNotFound, OutOfBounds
from faultline.job import JobInfo, JobState
from faultline.rpc.v1 import client_pb2, client_pb2_grpc
from faultline.server.auth import Caller, acting
from faultline.server.grpc.grpc_config import GrpcConfig
from faultline.server.grpc.guard.call_guard import WAIT, CallGuard, Context, unary
from faultline.server.grpc.guard.message_reader import writes_itself
from faultline.server.grpc.messages import info_message, new_job
from faultline.server.problems import TOO_MANY, TOO_SLOW, RequestRefused
from faultline.server.server_sender import sender_on
from faultline.server.throttling.document_pacing import DocumentPacing
from faultline.server.throttling.payload_budget import READ_SECONDS_MAX, PayloadBudget, PayloadShare
from faultline.server.waits import JobWaits
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.pool import AsyncStore
from faultline.store.rows import Outline
from faultline.worker.settlement.settle import as_text

NULL: Final = b"null"

ANSWER_SHARE: Final = 0.8
"""The part of a call's deadline that a wait may use: the rest is for the answer's way."""


class JobsService(client_pb2_grpc.JobsServicer):
    """Submit, get, wait, cancel."""

    def __init__(
        self, store: AsyncStore, config: GrpcConfig, guard: CallGuard, cancelled: Callable[[int], None]
    ) -> None:
        self.guard = guard
        self._store = store
        self._config = config
        self._cancelled = cancelled
        self._sender = sender_on(store)
        self.answers = PayloadBudget(config.answer_bytes_max, config.answer_bytes_per_key)
        self.waits = JobWaits(store.run, config.waits_max)

    @unary("enqueue")
    async def Submit(
        self, request: client_pb2.SubmitRequest, caller: Caller, context: Context
    ) -> client_pb2.SubmitResponse:
        if not request.HasField("job"):
            raise InputError("the request holds no job")
        new = await DocumentPacing.of_this_loop().one(lambda: new_job(request.job), request.ByteSize())
        caller.require("enqueue", new.queue)
        made = await self._sender.aenqueue(new)
        return client_pb2.SubmitResponse(id=made.id, is_new=made.is_new)

    @unary("enqueue")
    async def SubmitMany(
        self, request: client_pb2.SubmitManyRequest, caller: Caller, context: Context
    ) -> client_pb2.SubmitManyResponse:
        if not 1 <= len(request.jobs) <= self._config.batch_jobs_max:
            raise OutOfBounds(
                f"jobs holds 1 to {self._config.batch_jobs_max:,} jobs; got {len(request.jobs):,}"
            )
        asked = (new_job(one, f"jobs[{number}].") for number, one in enumerate(request.jobs))
        jobs = await DocumentPacing.of_this_loop().all_of(asked, request.ByteSize())
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
        # Without the payload: a hundred waits would hold a hundred payloads until they end.
        if not JobState((await self._outline(request.id, caller, "read")).state).ended:
            longest = self._config.wait_seconds_max
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
        """Write a job's facts, up to 2 MiB, within the memory budget: many answers are never read."""
        left = min(context.time_remaining() or 0.0, READ_SECONDS_MAX)
        load = await self.answers.room(caller.key_id or caller.name, time.monotonic() + left * ANSWER_SHARE)
        if load is None:
            raise RequestRefused(TOO_MANY, "too many answers wait to be read; read them, and ask again")
        try:
            answer = _message(await self._find(look, caller, "read"))
            load.shrink(answer.ByteSize())
            await self._write(answer, load, context)
            return answer
        finally:
            load.release()

    async def _write(self, answer: client_pb2.JobInfo, load: PayloadShare, context: Context) -> None:
        writing = asyncio.ensure_future(context.write(answer))
        try:
            async with load.being_written(READ_SECONDS_MAX):
                await asyncio.shield(writing)
        except TimeoutError:
            load.release()
            self.guard.connections.hang_up(context.peer())
            await writing  # gRPC can send no status before; as a rule the call is over already
            raise RequestRefused(TOO_SLOW, "the answer that was asked for is not being read") from None
        except BaseException:
            writing.cancel()
            raise

    async def _find(self, look: Call[JobInfo | None], caller: Caller, scope: str) -> JobInfo:
        """The job, if the caller's key covers its queue; other jobs get the same answer as missing ones."""
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


def _message(info: JobInfo) -> client_pb2.JobInfo:
    """Documents are passed on as text: parsing and writing them would block the loop for long."""
    return info_message(info, info.args or NULL, None if info.result == NULL else info.result)
