"""The service Workers: sessions, and a unary call for each of their messages."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from faultline.access import Caller
from faultline.errors import LeaseLost, NotAllowed
from faultline.lease import Lease
from faultline.remote.serving.assigning import Wish
from faultline.remote.serving.bell import Waiter
from faultline.remote.serving.cargo import patience
from faultline.remote.serving.desk import Desk, trouble_of
from faultline.remote.serving.gate import POLL, Context, Gate, unary
from faultline.remote.serving.granting import Granted, in_parts, named, nothing
from faultline.remote.serving.problems import STOPPING, TOO_MANY, TOO_SLOW, TurnedAway, answering
from faultline.remote.serving.receiving import writes_itself
from faultline.remote.serving.rights import Rights
from faultline.remote.serving.session import PART_SHARE, Session
from faultline.remote.serving.settling import TROUBLE
from faultline.remote.serving.translate import REASONS, claim_id, refusal
from faultline.rpc.v1 import worker_pb2, worker_pb2_grpc
from faultline.server.turnstile import VITAL
from faultline.store import calls
from faultline.store.turns import taking

ANSWER_SHARE = 0.8
"""How much of a call's own deadline a long poll may take: the rest is for the answer's way."""

NO_CLAIM = bytes(16)
"""No lease has it: what comes with it is answered, and nothing is recorded."""

WORDS = {number: word for word, number in REASONS.items()}


class WorkersService(worker_pb2_grpc.WorkersServicer):
    """What workers ask for, in both forms."""

    def __init__(self, desk: Desk, gate: Gate, spawn: Callable[..., asyncio.Task[Any]]) -> None:
        self.desk = desk
        self.gate = gate
        self.spawn = spawn
        self.sessions: set[Session] = set()
        self._by_key: Counter[str] = Counter()
        self._polls: set[Waiter] = set()
        self.draining = False

    async def Session(self, request_iterator: Any, context: Context) -> None:
        """One worker's stream."""
        async with answering(context):
            caller = await self.gate.admit(context, "work")
            whose = caller.key_id or caller.name
            self._make_room(whose)
            session = Session(self.desk, self.gate, context, self.spawn)
            self.sessions.add(session)
            self._by_key[whose] += 1
            try:
                with taking(name=caller.actor):
                    await session.run(caller)
            finally:
                self.sessions.discard(session)
                self._by_key[whose] -= 1
                if not self._by_key[whose]:
                    del self._by_key[whose]

    def _make_room(self, whose: str) -> None:
        config = self.desk.config
        if self.draining:
            raise TurnedAway(STOPPING, "the server is stopping; open a session with another one")
        if self._by_key[whose] >= config.sessions_per_key or len(self.sessions) >= config.sessions_max:
            raise TurnedAway(
                TOO_MANY, f"this key has {self._by_key[whose]} of {len(self.sessions)} sessions open"
            )

    @unary("work")
    async def Start(self, request: worker_pb2.Hello, caller: Caller, context: Context) -> worker_pb2.Welcome:
        return await self.desk.welcome(request, caller)

    @unary("work")
    async def Stop(
        self, request: worker_pb2.StopRequest, caller: Caller, context: Context
    ) -> worker_pb2.StopResponse:
        worker = await self.desk.numbers.own(request.worker, caller)
        if worker is None:
            raise NotAllowed(f"{caller.name} has no worker {request.worker}; stop one that it started")
        await self.desk.store.run(calls.worker_stopped(worker))
        return worker_pb2.StopResponse()

    def _undelivered(self, answer: worker_pb2.Assignments) -> None:
        """Jobs of a Lease that ends without its answer go back at once, not only by their leases' end."""
        if answer.jobs:
            self.spawn(self.desk.assigner.hand_back(named(answer.jobs)))

    @writes_itself
    @unary("work", POLL, _undelivered)
    async def Lease(
        self, request: worker_pb2.LeaseRequest, caller: Caller, context: Context
    ) -> worker_pb2.Assignments:
        desk, ask = self.desk, request.ask
        queues = desk.queues_of(ask.queues, caller)
        lease, timeout = desk.lease_of(request.lease_ms), desk.timeout_of(request.timeout_ms)
        worker = await desk.numbers.named(request.worker, caller)
        wish = desk.wish(ask, queues, lease, timeout, worker, caller)
        id = ask.id
        del request, ask, queues  # the wish holds what is needed; a poll takes long
        try:
            seconds = (context.time_remaining() or 0.0) * ANSWER_SHARE
            granted = nothing() if self.draining else await self._poll(wish, seconds)
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
        """Write the answer of a Lease. If its jobs are not being read the call ends, and they go back."""
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
            self.gate.connections.hang_up(context.peer())
            await writing  # until then gRPC can send no status; as a rule the call is over before
            raise TurnedAway(TOO_SLOW, "the jobs that were asked for are not being read") from None
        except BaseException:
            writing.cancel()
            self._undelivered(answer)
            raise
        return answer

    async def _one_part(self, granted: Granted) -> worker_pb2.Assignments:
        desk = self.desk
        first, *rest = in_parts(granted.answer, int(desk.config.message_bytes_max * PART_SHARE))
        if rest:  # a unary answer has one part: the others wait in their line, as before
            over = [job for part in rest for job in part.assignments.jobs]
            try:
                await asyncio.shield(self.spawn(desk.assigner.hand_back(over)))
            except asyncio.CancelledError:
                self._undelivered(first.assignments)
                raise
            first.assignments.more = False
        return first.assignments

    async def _poll(self, wish: Wish, seconds_max: float) -> Granted:
        """Assign; if the caller goes away meanwhile, what was claimed for it goes back."""
        waiter = Waiter(wish.queues, wish.except_tasks)
        self._polls.add(waiter)
        alarm = asyncio.get_running_loop().call_later(min(wish.wait, seconds_max), waiter.end)
        claiming = self.spawn(self.desk.assigner.assign(wish, waiter))
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
            await self.desk.assigner.hand_back(granted.jobs)
        finally:
            if granted.load is not None:
                granted.load.release()

    @unary("work", VITAL)
    async def Heartbeat(
        self, request: worker_pb2.HeartbeatRequest, caller: Caller, context: Context
    ) -> worker_pb2.Beaten:
        lease = self.desk.lease_of(request.lease_ms)
        worker = await self.desk.numbers.named(request.worker, caller)
        return await self.desk.beat(request.beat, lease, worker, self._rights(caller))

    @unary("work", VITAL)
    async def Settle(
        self, request: worker_pb2.SettleRequest, caller: Caller, context: Context
    ) -> worker_pb2.Settled:
        worker = await self.desk.numbers.named(request.worker, caller)
        settled = await self.desk.settle(request.results, worker, self._rights(caller))
        if len(request.results.items) == 1 and settled.rest and settled.rest[0].why == worker_pb2.WHY_REFUSED:
            raise _lost(settled.rest[0].refusal)
        return settled

    @unary("work", VITAL)
    async def Outcome(
        self, request: worker_pb2.OutcomeRequest, caller: Caller, context: Context
    ) -> worker_pb2.OutcomeResponse:
        return await self.desk.ends(request.leases, self._rights(caller))

    @unary("work")
    async def Refused(
        self, request: worker_pb2.RefusedRequest, caller: Caller, context: Context
    ) -> worker_pb2.Refusal:
        worker = await self.desk.numbers.named(request.worker, caller)
        lease = Lease(request.job_id, request.token, claim_id(request.claim or NO_CLAIM), 0.0, 0.0)
        if request.job_id not in await self._rights(caller).keep([lease]):
            return refusal(request.job_id, request.token, "gone", None)
        reason, current = await self.desk.store.run(calls.refused(lease, worker))
        return refusal(request.job_id, request.token, reason, current)

    @unary("work")
    async def Figures(
        self, request: worker_pb2.FiguresRequest, caller: Caller, context: Context
    ) -> worker_pb2.FiguresResponse:
        return await self.desk.figures(request, self._rights(caller))

    @unary("work")
    async def OthersServe(
        self, request: worker_pb2.OthersServeRequest, caller: Caller, context: Context
    ) -> worker_pb2.OthersServeResponse:
        return worker_pb2.OthersServeResponse(others=await self.desk.others_serve(request, caller))

    def _rights(self, caller: Caller) -> Rights:
        return Rights(self.desk.store, caller)

    def gave(self, job_id: int) -> bool:
        """Whether a session here has given this job out, as far as it remembers."""
        return any(session.gave(job_id) for session in self.sessions)

    def cancelled(self, job_id: int) -> None:
        """A job was cancelled through this server: whoever works on it by a session here is told at once."""
        for session in self.sessions:
            session.cancelled(job_id)

    def drain(self, grace: float) -> None:
        """No more jobs are given out here; everybody is told."""
        self.draining = True
        for session in list(self.sessions):
            session.drain(grace)
        for waiter in list(self._polls):
            waiter.end()


def _lost(said: worker_pb2.Refusal) -> LeaseLost:
    current = said.current_token if said.HasField("current_token") else None
    reason: Any = WORDS[said.reason]
    return LeaseLost(said.job_id, said.token, current, reason)
