"""ResultSettler: results in, one answer for each refused result. The fence is the database's, as ever."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from faultline.args.document import check_document
from faultline.errors import CannotConnect, DatabaseError, FaultlineError, InputError, LeaseLost
from faultline.lease import Lease
from faultline.outcome import Outcome
from faultline.remote import outcome_messages
from faultline.rpc.v1 import worker_pb2
from faultline.server.grpc.call_status import told_of
from faultline.server.grpc.messages import ClaimIds, check_names, refusal
from faultline.server.grpc.sessions.queue_scope import QueueScope
from faultline.server.problems import MALFORMED, RequestRefused
from faultline.server.throttling.document_pacing import DocumentPacing
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.pool import AsyncStore
from faultline.store.rows import SettleRefusal
from faultline.worker.settlement.settle import MANY, settle

TROUBLE: Final = (DatabaseError, psycopg.Error, TimeoutError)
"""Database errors that a correct call can meet."""


class ResultItem(NamedTuple):
    """One result: its lease, its place in the message, and its outcome. The repr hides its claim."""

    job_id: int
    token: int
    claim: UUID
    place: int
    kind: str
    result: worker_pb2.Result

    @property
    def lease(self) -> Lease:
        return Lease(self.job_id, self.token, self.claim, 0.0, 0.0)

    def __repr__(self) -> str:
        return f"Item(job_id={self.job_id}, token={self.token}, kind={self.kind!r})"


Recordable = tuple[ResultItem, Outcome]
"""A result, and the outcome in it."""

Many = Callable[[Sequence[ResultItem], Sequence[Any], int | None], Call[list[SettleRefusal]]]
"""The bulk calls for results with the same outcome."""


class ResultSettler:
    """Records outcomes: successes together, failures together, the rest singly."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def settle(
        self, id: int, named: list[ResultItem], worker: int | None, rights: QueueScope
    ) -> worker_pb2.Settled:
        """Record all of them; in `rest`, one line for each refused result."""
        try:
            theirs = await rights.keep(named)
        except TROUBLE as trouble:
            return worker_pb2.Settled(id=id, rest=[_in_trouble(item.place, trouble) for item in named])
        items, rest = await recordable([item for item in named if item.job_id in theirs])
        # Leases of other queues are answered like missing ones: the answer does not tell which exist.
        rest += [_refused(item, "gone", None) for item in named if item.job_id not in theirs]
        by_kind: dict[type[Outcome], list[Recordable]] = {}
        for item, outcome in items:
            by_kind.setdefault(type(outcome), []).append((item, outcome))
        for kind, batch in by_kind.items():
            if many := MANY.get(kind):
                rest += await self._settle_many(batch, many, worker)
            else:
                rest += await self._settle_singly(batch, worker)
        accepted = len(named) - len(rest)
        return worker_pb2.Settled(id=id, accepted=accepted, rest=rest)

    async def _settle_many(
        self, batch: list[Recordable], many: Many, worker: int | None
    ) -> list[worker_pb2.Unsettled]:
        """One call for all of them; results without an answer were recorded."""
        try:
            items, outcomes = zip(*batch, strict=True)
            answers = await self._store.run(many(items, outcomes, worker))
        except InputError:  # one of them breaks a rule and none was recorded: single calls find it
            return await self._settle_singly(batch, worker)
        except TROUBLE as trouble:
            return [_in_trouble(item.place, trouble) for item, _ in batch]
        if not answers:
            return []
        places = {item[:2]: item.place for item in items}
        return [_answered(places[answer.job_id, answer.token], answer) for answer in answers]

    async def _settle_singly(self, batch: list[Recordable], worker: int | None) -> list[worker_pb2.Unsettled]:
        rest = []
        for item, outcome in batch:
            rest += await self._settle_one(item, outcome, worker)
        return rest

    async def _settle_one(
        self, item: ResultItem, outcome: Outcome, worker: int | None
    ) -> list[worker_pb2.Unsettled]:
        try:
            await self._store.run(settle(item.lease, outcome))
        except LeaseLost:
            return [await self._note_refusal(item, worker)]
        except InputError as error:
            return [_invalid(item.place, error)]
        except TROUBLE as trouble:
            return [_in_trouble(item.place, trouble)]
        return []

    async def _note_refusal(self, item: ResultItem, worker: int | None) -> worker_pb2.Unsettled:
        try:
            reason, current_token = await self._store.run(calls.refused(item.lease, worker))
        except TROUBLE as trouble:
            return _in_trouble(item.place, trouble)
        return _refused(item, reason, current_token)


def read(results: worker_pb2.Results, most: int) -> list[ResultItem]:
    """The leases of a message, each once; OutOfBounds for an invalid one."""
    items: list[ResultItem] = []
    claims = ClaimIds()
    for place, result in enumerate(results.items):
        kind = result.WhichOneof("outcome")
        if kind is None:
            raise RequestRefused(MALFORMED, f"the result of job {result.job_id} does not say how it ended")
        items.append(ResultItem(result.job_id, result.token, claims[result.claim], place, kind, result))
    check_names(items, most)
    return items


async def recordable(items: list[ResultItem]) -> tuple[list[Recordable], list[worker_pb2.Unsettled]]:
    """The results that can be kept, each with its outcome, and an answer for each other one."""
    given = [(item, outcome_messages.document_of(item.result, item.kind)) for item in items]
    checks = (_unkept(item, result) for item, result in given if result and result != b"null")
    size = sum(len(result) for _, result in given)
    rest = [one for one in await DocumentPacing.of_this_loop().all_of(checks, size) if one is not None]
    if rest:
        places = {one.index for one in rest}
        items = [item for item in items if item.place not in places]
    kept = []
    for item in items:
        try:
            kept.append((item, outcome_messages.read(item.result, item.kind)))
        except InputError as error:
            rest.append(_invalid(item.place, error))
    return kept, rest


def _unkept(item: ResultItem, result: bytes) -> worker_pb2.Unsettled | None:
    try:
        check_document(result, f"the result of job {item.job_id}")
    except InputError as error:
        return _invalid(item.place, error)
    return None


def _answered(index: int, answer: SettleRefusal) -> worker_pb2.Unsettled:
    if answer.answer == "busy":
        return worker_pb2.Unsettled(index=index, why=worker_pb2.WHY_BUSY)
    said = refusal(answer.job_id, answer.token, answer.reason, answer.current_token)
    return worker_pb2.Unsettled(index=index, why=worker_pb2.WHY_REFUSED, refusal=said)


def _refused(item: ResultItem, reason: str, current_token: int | None) -> worker_pb2.Unsettled:
    said = refusal(item.job_id, item.token, reason, current_token)
    return worker_pb2.Unsettled(index=item.place, why=worker_pb2.WHY_REFUSED, refusal=said)


def _invalid(index: int, error: FaultlineError) -> worker_pb2.Unsettled:
    return worker_pb2.Unsettled(index=index, why=worker_pb2.WHY_INVALID, problem=told_of(error).problem)


def _in_trouble(index: int, trouble: Exception) -> worker_pb2.Unsettled:
    """Without a connection nothing was sent; otherwise the outcome is unknown until the rows are read."""
    why = worker_pb2.WHY_UNSENT if isinstance(trouble, CannotConnect) else worker_pb2.WHY_UNKNOWN
    return worker_pb2.Unsettled(index=index, why=why, problem=told_of(trouble).problem)
