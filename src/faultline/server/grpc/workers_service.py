"""The service Workers: sessions, and a unary call for each of their messages."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from faultline.errors import LeaseLost, NotAllowed
from faultline.lease import Lease
from faultline.rpc.v1 import worker_pb2, worker_pb2_grpc
from faultline.server.auth import Caller
from faultline.server.grpc.call_status import answering
from faultline.server.grpc.guard.call_guard import POLL, CallGuard, Context, unary
from faultline.server.grpc.guard.message_reader import writes_itself
from faultline.server.grpc.messages import REASONS, claim_id, refusal
from faultline.server.grpc.sessions.assigner import JobRequest
from faultline.server.grpc.sessions.job_messages import PART_SHARE, Granted, in_parts, named, nothing
from faultline.server.grpc.sessions.queue_scope import QueueScope
from faultline.server.grpc.sessions.result_settler import TROUBLE
from faultline.server.grpc.sessions.wait_queue import Waiter
from faultline.server.grpc.sessions.worker_service import WorkerService, trouble_of
from faultline.server.grpc.sessions.worker_session import WorkerSession
from faultline.server.problems import STOPPING, TOO_MANY, TOO_SLOW, RequestRefused
from faultline.server.throttling.payload_budget import patience
from faultline.server.throttling.rate_limit import VITAL
from faultline.store import calls
from faultline.store.connection_turns import taking

ANSWER_SHARE = 0.8
"""The part of a call's deadline that a long poll may use: the rest is for the answer's way."""

NO_CLAIM = bytes(16)
"""A claim that no lease has: its result is answered, and nothing is recorded."""

WORDS = {number: word for word, number in REASONS.items()}


class WorkersService(worker_pb2_grpc.WorkersServicer):
    """The calls of workers, in both forms."""

    def __init__(
        self, service: WorkerService, guard: CallGuard, spawn: Callable[..., asyncio.Task[Any]]
    ) -> None:
        self.service = service
        self.guard = guard
        self.spawn = spawn
        self.sessions: set[WorkerSession] = set()
        self._by_key: Counter[str] = Counter()
        self._polls: set[Waiter] = set()
        self.draining = False

    async def Session(self, request_iterator: Any, context: Context) -> None:
        """One worker's stream."""
        async with answering(context):
            caller = await self.guard.admit(context, "work")
            whose = caller.key_id or caller.name
            self._make_room(whose)
            session = WorkerSession(self.service, self.guard, context, self.spawn, caller)
            self.sessions.add(session)
            self._by_key[whose] += 1
            try:
                with taking(name=caller.actor):
                    await session.run()
            finally:
                self.sessions.discard(session)
                self._by_key[whose] -= 1
                if not self._by_key[whose]:
                    del self._by_key[whose]

    def _make_room(self, whose: str) -> None:
        config = self.service.config
        if self.draining:
            raise RequestRefused(STOPPING, "the server is stopping; open a session with another one")
        if self._by_key[whose] >= config.sessions_per_key or len(self.sessions) >= config.sessions_max:
            raise RequestRefused(
                TOO_MANY, f"this key has {self._by_key[whose]} of {len(self.sessions)} sessions open"
            )

    @unary("work")
    async def Start(self, request: worker_pb2.Hello, caller: Caller, context: Context) -> worker_pb2.Welcome:
        return await self.service.welcome(request, caller)

    @unary("work")
    async def Stop(
        self, request: worker_pb2.StopRequest, caller: Caller, context: Context
    ) -> worker_pb2.StopResponse:
        worker = await self.service.numbers.own(request.worker, caller)
        if worker is None:
            raise NotAllowed(f"{caller.name} has no worker {request.worker}; stop one that it started")
        await self.service.store.run(calls.worker_stopped(worker))
        return worker_pb2.StopResponse()

    def _undelivered(self, answer: worker_pb2.Assignments) -> None:
        """Give back at once the jobs of a Lease call that ends without its answer."""
        if answer.jobs:
            self.spawn(self.service.assigner.hand_back(named(answer.jobs)))

    @writes_itself
    @unary("work", POLL, _undelivered)
    async def Lease(
        self, request: worker_pb2.LeaseRequest, caller: Caller, context: Context
    ) -> worker_pb2.Assignments:
        service, ask = self.service, request.ask
        queues = service.queues_of(ask.queues, caller)
        lease, timeout = service.lease_of(request.lease_ms), service.timeout_of(request.timeout_ms)
        worker = await service.numbers.named(request.worker, caller)
        wanted = service.job_request(ask, queues, lease, timeout, worker, caller)
        id = ask.id
        del request, ask, queues  # the job request holds all that is needed; a poll takes long
        try:
            seconds = (context.time_remaining() or 0.0) * ANSWER_SHARE
            granted = nothing() if self.draining else await self._poll(wanted, seconds)
        except TROUBLE as trouble:
            granted = nothing()
            granted.answer.assignments.trouble.CopyFrom(trouble_of(trouble))
        granted.answer.assignments.id = id
        try:
            return await self._send(granted, context, patience(lease.total_seconds()))
        finally:
            if granted.load is not None:
                granted.load.release()

    async def _send(self, granted: Granted, context: Context, seconds: float) -> worker_pb2.Assignments:
        """Write the answer of a Lease. If its jobs are not read the call ends, and they are given back."""
        answer = await self._one_part(granted)
        load = granted.load
        writing = asyncio.ensure_future(context.write(answer))
        try:
            async with asyncio.timeout(seconds) if load is None else load.being_written(seconds):
                await asyncio.shield(writing)
        except TimeoutError:
            self._undelivered(answer)
            if load is not None:
                load.release()
            self.guard.connections.hang_up(context.peer())
            await writing  # gRPC can send no status before; as a rule the call is over already
            raise RequestRefused(TOO_SLOW, "the jobs that were asked for are not being read") from None
        except BaseException:
            writing.cancel()
            self._undelivered(answer)
            raise
        return answer

    async def _one_part(self, granted: Granted) -> worker_pb2.Assignments:
        service = self.service
        first, *rest = in_parts(granted.answer, int(service.config.message_bytes_max * PART_SHARE))
        if rest:  # a unary answer has one part: the others stay in the queue, as before
            over = [job for part in rest for job in part.assignments.jobs]
            try:
                await asyncio.shield(self.spawn(service.assigner.hand_back(over)))
            except asyncio.CancelledError:
                self._undelivered(first.assignments)
                raise
            first.assignments.more = False
        return first.assignments

    async def _poll(self, wanted: JobRequest, seconds_max: float) -> Granted:
        """Assign; if the caller leaves meanwhile, the claimed jobs are given back."""
        waiter = Waiter(wanted.queues, wanted.except_tasks, self.service.kinds.of(wanted.worker))
        self._polls.add(waiter)
        alarm = asyncio.get_running_loop().call_later(min(wanted.wait, seconds_max), waiter.end)
        claiming = self.spawn(self.service.assigner.assign(wanted, waiter))
        try:
            granted: Granted = await asyncio.shield(claiming)
            return granted
        except asyncio.CancelledError:
            self.spawn(self._hand_back_after(claiming))
            raise
        finally:
            alarm.cancel()
            waiter.end()
            self._polls.discard(waiter)

    async def _hand_back_after(self, claiming: asyncio.Task[Granted]) -> None:
        granted = await claiming
        try:
            await self.service.assigner.hand_back(granted.jobs)
        finally:
            if granted.load is not None:
                granted.load.release()

    @unary("work", VITAL)
    async def Heartbeat(
        self, request: worker_pb2.HeartbeatRequest, caller: Caller, context: Context
    ) -> worker_pb2.Beaten:
        lease = self.service.lease_of(request.lease_ms)
        worker = await self.service.numbers.named(request.worker, caller)
        return await self.service.beat(request.beat, lease, worker, self._rights(caller))

    @unary("work", VITAL)
    async def Settle(
        self, request: worker_pb2.SettleRequest, caller: Caller, context: Context
    ) -> worker_pb2.Settled:
        worker = await self.service.numbers.named(request.worker, caller)
        settled = await self.service.settle(request.results, worker, self._rights(caller))
        if len(request.results.items) == 1 and settled.rest and settled.rest[0].why == worker_pb2.WHY_REFUSED:
            raise _lost(settled.rest[0].refusal)
        return settled

    @unary("work", VITAL)
    async def Outcome(
        self, request: worker_pb2.OutcomeRequest, caller: Caller, context: Context
    ) -> worker_pb2.OutcomeResponse:
        return await self.service.ends(request, self._rights(caller))

    @unary("work")
    async def Refused(
        self, request: worker_pb2.RefusedRequest, caller: Caller, context: Context
    ) -> worker_pb2.Refusal:
        worker = await self.service.numbers.named(request.worker, caller)
        lease = Lease(request.job_id, request.token, claim_id(request.claim or NO_CLAIM), 0.0, 0.0)
        if request.job_id not in await self._rights(caller).keep([lease]):
            return refusal(request.job_id, request.token, "gone", None)
        reason, current = await self.service.store.run(calls.refused(lease, worker))
        return refusal(request.job_id, request.token, reason, current)

    @unary("work")
    async def Figures(
        self, request: worker_pb2.FiguresRequest, caller: Caller, context: Context
    ) -> worker_pb2.FiguresResponse:
        return await self.service.figures(request, self._rights(caller))

    @unary("work")
    async def NewestPlace(
        self, request: worker_pb2.NewestPlaceRequest, caller: Caller, context: Context
    ) -> worker_pb2.NewestPlaceResponse:
        place = await self.service.store.run(calls.newest_place())
        return worker_pb2.NewestPlaceResponse(place=place)

    @unary("work")
    async def OthersServe(
        self, request: worker_pb2.OthersServeRequest, caller: Caller, context: Context
    ) -> worker_pb2.OthersServeResponse:
        return worker_pb2.OthersServeResponse(others=await self.service.others_serve(request, caller))

    def _rights(self, caller: Caller) -> QueueScope:
        return QueueScope(self.service.store, caller)

    def gave(self, job_id: int) -> bool:
        """Whether a session here has assigned this job, as far as it remembers."""
        return any(session.gave(job_id) for session in self.sessions)

    def cancelled(self, job_id: int) -> None:
        """A job was cancelled through this server: its worker is told at once, if it has a session here."""
        for session in self.sessions:
            session.cancelled(job_id)

    def drain(self, grace: float) -> None:
        """Stop assigning jobs here, and tell every worker."""
        self.draining = True
        for session in list(self.sessions):
            session.drain(grace)
        for waiter in list(self._polls):
            waiter.end()


def _lost(said: worker_pb2.Refusal) -> LeaseLost:
    current = said.current_token if said.HasField("current_token") else None
    reason: Any = WORDS[said.reason]
    return LeaseLost(said.job_id, said.token, current, reason)
