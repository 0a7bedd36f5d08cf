"""WorkerService: the common part of the stream and the unary calls. Both forms have one meaning."""

import time
from collections.abc import Container, Iterable, Sequence
from datetime import timedelta
from typing import Final
from uuid import uuid4

from faultline import __version__, bounds
from faultline.errors import CannotConnect, InputError, NotAllowed, OutOfBounds
from faultline.rpc.v1 import worker_pb2
from faultline.server.auth import Caller
from faultline.server.grpc.call_status import told_of
from faultline.server.grpc.grpc_config import GrpcConfig
from faultline.server.grpc.messages import ENDS, PULSES, claim_id, leases, milliseconds, span, trace_in
from faultline.server.grpc.sessions.assigner import Assigner, JobRequest
from faultline.server.grpc.sessions.queue_scope import QueueScope
from faultline.server.grpc.sessions.result_settler import TROUBLE, ResultSettler, read
from faultline.server.grpc.sessions.task_kinds import TaskKinds, checked
from faultline.server.grpc.sessions.wait_queue import WaitQueue
from faultline.server.grpc.sessions.worker_numbers import WorkerNumbers
from faultline.server.problems import PROTOCOL, RequestRefused
from faultline.server.throttling.payload_budget import PayloadBudget
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.pool import AsyncStore
from faultline.worker.settlement.settle import as_text

PROTOCOL_VERSION: Final = 1
NAME_CHARS_MAX: Final = 200
VERSION_CHARS_MAX: Final = 100
QUEUES_MAX: Final = 1_000
NAMED_MAX: Final = 5
SLOTS_MAX: Final = 10_000


class WorkerService:
    """Answers Asks, Beats and Results, whichever way they came."""

    def __init__(self, store: AsyncStore, config: GrpcConfig, wait_queue: WaitQueue) -> None:
        self.store = store
        self.config = config
        self.wait_queue = wait_queue
        self.assigner = Assigner(
            store, wait_queue, PayloadBudget(config.unsent_bytes_max, config.unsent_bytes_per_key)
        )
        self.settling = ResultSettler(store)
        self.numbers = WorkerNumbers(store)
        self.kinds = TaskKinds(store)

    async def welcome(self, hello: worker_pb2.Hello, caller: Caller) -> worker_pb2.Welcome:
        """Register the worker, and answer the limits of this server."""
        if hello.protocol != PROTOCOL_VERSION:
            raise RequestRefused(
                PROTOCOL, f"this server speaks protocol {PROTOCOL_VERSION}; you speak {hello.protocol}"
            )
        queues = self.queues_of(hello.queues, caller)
        lease, timeout = self.lease_of(hello.lease_ms), self.timeout_of(hello.timeout_ms)
        checked(hello.tasks)
        worker = await self.numbers.own(hello.worker, caller)
        is_new = worker is None
        if worker is None:  # new, or a number that belongs to another key's worker
            worker = await self.store.run(_started(hello, queues, caller))
            self.numbers.learn(worker, caller)
        await self.kinds.learn(worker, hello.tasks, is_new=is_new)
        limits = worker_pb2.Limits(
            message_bytes_max=self.config.message_bytes_max, room_max=self.config.room_max,
            wait_ms_max=int(self.config.ask_seconds_max * 1000), items_max=self.config.items_max,
            unanswered_max=self.config.unanswered_max, except_tasks_max=self.config.except_tasks_max,
        )  # fmt: skip
        return worker_pb2.Welcome(
            worker=worker, protocol=PROTOCOL_VERSION, server_version=__version__, limits=limits, pings=True,
            lease_ms=milliseconds(lease), timeout_ms=milliseconds(timeout),
        )  # fmt: skip

    def queues_of(self, named: Sequence[str], caller: Caller) -> list[str]:
        """The queues that a worker names, each allowed by its key."""
        queues = list(dict.fromkeys(named))
        if not 1 <= len(queues) <= QUEUES_MAX:
            raise OutOfBounds(f"a worker names 1 to {QUEUES_MAX} queues; this one named {len(queues)}")
        caller.require("work")
        closed = [queue for queue in queues if not caller.may("work", bounds.check_queue_name(queue))]
        if closed:
            # The worker named these queues itself: the answer only tells it which of them to leave out.
            more = "" if len(closed) <= NAMED_MAX else f" and {len(closed) - NAMED_MAX} more"
            raise NotAllowed(
                f"{caller.name} may not work on {', '.join(closed[:NAMED_MAX])}{more}; name only queues that "
                "the key is for (--queues), or use another key"
            )
        return queues

    def lease_of(self, ms: int) -> timedelta:
        return bounds.check_lease_for(span("lease_ms", ms)) if ms else self.config.lease

    def timeout_of(self, ms: int) -> timedelta:
        return bounds.check_timeout(span("timeout_ms", ms)) if ms else self.config.timeout

    def job_request(
        self,
        ask: worker_pb2.Ask,
        queues: Sequence[str],
        lease: timedelta,
        timeout: timedelta,
        worker: int | None,
        caller: Caller,
    ) -> JobRequest:
        """The checked content of an Ask; `queues` are the allowed ones, which all apply if it names none."""
        if not 1 <= ask.room <= self.config.room_max:
            raise OutOfBounds(f"room is {ask.room}; an Ask is for 1 to {self.config.room_max} jobs")
        if ask.again and not ask.claim:
            raise InputError("an Ask that asks `again` names the claim it asks about")
        if strange := set(ask.queues) - set(queues):
            raise InputError(f"queue {min(strange)[:60]!a} is not among those the worker said hello for")
        return JobRequest(
            queues=list(dict.fromkeys(ask.queues)) or queues, room=ask.room, lease=lease, timeout=timeout,
            claim=claim_id(ask.claim) if ask.claim else uuid4(), worker=worker, arrived=time.monotonic(),
            wait=min(ask.wait_ms / 1000, self.config.ask_seconds_max), again=ask.again,
            begins={begin.lane: begin.place for begin in ask.begins[:100]}, allowed=caller.queues,
            trace=trace_in(ask.trace), whose=caller.key_id or caller.name,
            except_tasks=self._excepted(ask.except_tasks),
        )  # fmt: skip

    def _excepted(self, tasks: Sequence[str]) -> Sequence[str]:
        """Tasks that an Ask excepts, each once; OutOfBounds for too many, BadName for an invalid name."""
        if not tasks:
            return ()
        if len(tasks) > (most := self.config.except_tasks_max):
            raise OutOfBounds(f"except_tasks names {len(tasks)}; an Ask excepts at most {most} tasks")
        return [bounds.check_task_name(task) for task in dict.fromkeys(tasks)]

    async def beat(
        self, beat: worker_pb2.Beat, lease: timedelta, worker: int | None, rights: QueueScope
    ) -> worker_pb2.Beaten:
        """Renew the leases; a stale lease is answered `lost`, and changes nothing."""
        named = leases(beat.leases, self.config.items_max)
        try:
            theirs = await rights.keep(named)
            held = [named_lease for named_lease in named if named_lease.job_id in theirs]
            beats = await self.store.run(calls.heartbeat(sorted(held), lease, worker))
        except TROUBLE as trouble:
            return worker_pb2.Beaten(id=beat.id, trouble=trouble_of(trouble))
        answers = {(answer.job_id, answer.token): PULSES[answer.answer] for answer in beats}
        said = [
            answers.get((named_lease.job_id, named_lease.token), worker_pb2.PULSE_LOST)
            for named_lease in named
        ]
        return worker_pb2.Beaten(id=beat.id, answers=said)

    async def settle(
        self, results: worker_pb2.Results, worker: int | None, rights: QueueScope
    ) -> worker_pb2.Settled:
        """Record outcomes, each with its own answer."""
        items = read(results, self.config.items_max)
        return await self.settling.settle(results.id, items, worker, rights)

    async def ends(self, asked: worker_pb2.OutcomeRequest, rights: QueueScope) -> worker_pb2.OutcomeResponse:
        """The ends of leases, by the rows."""
        named = leases(asked.leases, self.config.items_max)
        theirs = await rights.keep(named)
        outcome = calls.outcome_in if asked.in_own_transaction else calls.outcome
        ends = [
            ENDS[await self.store.run(outcome(lease)) if lease.job_id in theirs else "gone"]
            for lease in named
        ]
        return worker_pb2.OutcomeResponse(ends=ends)

    async def others_serve(self, asked: worker_pb2.OthersServeRequest, caller: Caller) -> bool:
        """Whether other workers were seen lately in a queue of its key."""
        (queue,) = self.queues_of([asked.queue], caller)
        worker = await self.numbers.named(asked.worker, caller)
        return await self.store.run(calls.others_serve(queue, worker))

    async def figures(
        self, asked: worker_pb2.FiguresRequest, rights: QueueScope
    ) -> worker_pb2.FiguresResponse:
        """Delays of taken-over jobs and lifetimes of zombies, for a worker's metrics."""
        most = self.config.items_max
        if len(asked.granted) > most or len(asked.refused) > most:
            raise OutOfBounds(f"a message names at most {most} leases of each kind")
        theirs = await rights.keep([*asked.granted, *asked.refused])
        granted, refused = _names(asked.granted, theirs), _names(asked.refused, theirs)
        recovered = await self.store.run(calls.recoveries(granted)) if granted else []
        lived = await self.store.run(calls.zombies(refused)) if refused else []
        return worker_pb2.FiguresResponse(recovery_seconds=recovered, zombie_seconds=lived)


def _names(named: Iterable[worker_pb2.LeaseName], theirs: Container[int]) -> list[tuple[int, int]]:
    """The leases, by job and token, whose jobs are among these."""
    return [(one.job_id, one.token) for one in named if one.job_id in theirs]


def _started(hello: worker_pb2.Hello, queues: list[str], caller: Caller) -> Call[int]:
    name, host = as_text(hello.name, NAME_CHARS_MAX), as_text(hello.host, NAME_CHARS_MAX)
    slots = min(max(hello.slots, 1), SLOTS_MAX)
    return calls.worker_started(
        name or "nameless", host, hello.pid % 2**31, queues, slots, as_text(hello.version, VERSION_CHARS_MAX),
        caller.name,
    )  # fmt: skip


def trouble_of(error: Exception) -> worker_pb2.Trouble:
    """The state in the database, for a worker that tries again."""
    return worker_pb2.Trouble(problem=told_of(error).problem, unknown=not isinstance(error, CannotConnect))
