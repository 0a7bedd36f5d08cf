"""Settling: results in, one answer for each that was not accepted. The fence is the database's, as ever."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from faultline import bounds
from faultline.args.document import check_document
from faultline.errors import CannotConnect, DatabaseError, FaultlineError, InputError, LeaseLost
from faultline.lease import Lease
from faultline.remote.serving.problems import MALFORMED, TurnedAway, told_of
from faultline.remote.serving.rights import Rights
from faultline.remote.serving.translate import Claims, check_names, refusal, span
from faultline.rpc.v1 import worker_pb2
from faultline.server.pacing import Pacing
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.rows import Answer
from faultline.store.run import AsyncStore
from faultline.worker.judge import UNKNOWN_TASK, unknown_for_long
from faultline.worker.settle import RETRY_PAUSE, as_text

ERROR_CHARS_MAX: Final = 8_192

TROUBLE: Final = (DatabaseError, psycopg.Error, TimeoutError)
"""What the database may do to a call that was itself in order."""


class Item(NamedTuple):
    """One result: its lease, its place in the message, and how the attempt ended. Its claim is not shown."""

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


Many = Callable[[Sequence[Item], int | None], Call[list[Answer]]]
"""How those that ended alike are recorded together."""


class Settling:
    """Records outcomes: successes together, failures together, the rest singly."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def settle(
        self, id: int, named: list[Item], worker: int | None, rights: Rights
    ) -> worker_pb2.Settled:
        """Record all of them; in `rest`, one line for each that was not accepted."""
        try:
            theirs = await rights.keep(named)
        except TROUBLE as trouble:
            return worker_pb2.Settled(id=id, rest=[_in_trouble(item.place, trouble) for item in named])
        items, rest = await recordable([item for item in named if item.job_id in theirs])
        # The others as if they did not exist: whether they do is not said.
        rest += [_refused(item, "gone", None) for item in named if item.job_id not in theirs]
        for kind, many in (("done", _complete_many), ("failed", _fail_many)):
            if batch := [item for item in items if item.kind == kind]:
                rest += await self._settle_many(batch, many, worker)
        for item in items:
            if item.kind not in ("done", "failed"):
                rest += await self._settle_one(item, worker)
        accepted = len(named) - len(rest)
        return worker_pb2.Settled(id=id, accepted=accepted, rest=rest)

    async def _settle_many(
        self, batch: list[Item], many: Many, worker: int | None
    ) -> list[worker_pb2.Unsettled]:
        """One call for all of them; who is not answered for got through."""
        try:
            answers = await self._store.run(many(batch, worker))
        except InputError:  # one of them breaks a rule, and none was recorded: singly, to find out which
            rest = []
            for item in batch:
                rest += await self._settle_one(item, worker)
            return rest
        except TROUBLE as trouble:
            return [_in_trouble(item.place, trouble) for item in batch]
        if not answers:
            return []
        places = {item[:2]: item.place for item in batch}
        return [_answered(places[answer.job_id, answer.token], answer) for answer in answers]

    async def _settle_one(self, item: Item, worker: int | None) -> list[worker_pb2.Unsettled]:
        try:
            await self._store.run(await self._reconsidered(item))
        except LeaseLost:
            return [await self._note_refusal(item, worker)]
        except InputError as error:
            return [_invalid(item.place, error)]
        except TROUBLE as trouble:
            return [_in_trouble(item.place, trouble)]
        return []

    async def _reconsidered(self, item: Item) -> Call[Any]:
        """Of a job that nobody has known for a day it is not taken that it is left for others: it is dead."""
        if item.kind == "snoozed" and item.result.snoozed.reason.startswith(UNKNOWN_TASK):
            info = await self._store.run(calls.get_unread(item.job_id))
            history = await self._store.run(calls.history(item.job_id))
            if info and info.claimed_at and unknown_for_long(history, info.claimed_at):
                return calls.bury(item.lease, f"no worker knew the task {info.task} for a day")
        return call_of(item.lease, item.result)

    async def _note_refusal(self, item: Item, worker: int | None) -> worker_pb2.Unsettled:
        try:
            reason, current_token = await self._store.run(calls.refused(item.lease, worker))
        except TROUBLE as trouble:
            return _in_trouble(item.place, trouble)
        return _refused(item, reason, current_token)


def read(results: worker_pb2.Results, most: int) -> list[Item]:
    """What a message names, each lease once; OutOfBounds for what cannot be one."""
    items: list[Item] = []
    claims = Claims()
    for place, result in enumerate(results.items):
        kind = result.WhichOneof("outcome")
        if kind is None:
            raise TurnedAway(MALFORMED, f"the result of job {result.job_id} does not say how it ended")
        items.append(Item(result.job_id, result.token, claims[result.claim], place, kind, result))
    check_names(items, most)
    return items


async def recordable(items: list[Item]) -> tuple[list[Item], list[worker_pb2.Unsettled]]:
    """Those whose results can be kept, and an answer for each other one: its neighbours are recorded."""
    given = [(item, item.result.done.result) for item in items if item.kind == "done"]
    checks = (_unkept(item, result) for item, result in given if result and result != b"null")
    size = sum(len(result) for _, result in given)
    rest = [one for one in await Pacing.of_this_loop().all_of(checks, size) if one is not None]
    if not rest:
        return items, rest
    places = {one.index for one in rest}
    return [item for item in items if item.place not in places], rest


def _unkept(item: Item, result: bytes) -> worker_pb2.Unsettled | None:
    try:
        check_document(result, f"the result of job {item.job_id}")
    except InputError as error:
        return _invalid(item.place, error)
    return None


def call_of(lease: Lease, result: worker_pb2.Result) -> Call[Any]:
    """The one write that records how an attempt ended, or InputError for what cannot be recorded."""
    match result.WhichOneof("outcome"):
        case "done":
            return calls.complete(lease, _text(result.done.result))
        case "failed":
            return calls.fail(lease, _error(result.failed.error), _pause(result.failed))
        case "snoozed":
            pause = span("delay_ms", result.snoozed.delay_ms)
            return calls.snooze(lease, pause, as_text(result.snoozed.reason))
        case "released":
            pause = span("delay_ms", result.released.delay_ms)
            return calls.release(lease, as_text(result.released.reason), pause)
        case "crashed":
            return _crash(lease, result.crashed)
        case "buried":
            return calls.bury(lease, as_text(result.buried.reason), _error(result.buried.error) or None)
        case "dropped":
            return calls.drop_claimed(lease, as_text(result.dropped.reason))
        case unknown:
            raise InputError(f"nothing is known here of an outcome {unknown}")


def _crash(lease: Lease, said: worker_pb2.Crashed) -> Call[str]:
    most = bounds.check_max_crashes(said.max_crashes) if said.HasField("max_crashes") else None
    return calls.crash(
        lease, _error(said.error), as_text(said.signature, 200), alone=said.alone, max_crashes=most,
        delay=_delay(said),
    )  # fmt: skip


def _delay(said: Any) -> timedelta | None:
    return span("delay_ms", said.delay_ms) if said.HasField("delay_ms") else None


def _pause(said: worker_pb2.Failed) -> timedelta:
    delay = _delay(said)
    return RETRY_PAUSE if delay is None else delay


def _error(text: str) -> str:
    return as_text(text, ERROR_CHARS_MAX)


def _text(data: bytes) -> str | None:
    try:
        return data.decode() or None
    except UnicodeDecodeError:
        raise InputError("a result is JSON in UTF-8; this one is no UTF-8") from None


def _complete_many(batch: Sequence[Item], worker: int | None) -> Call[list[Answer]]:
    results = [_text(item.result.done.result) for item in batch]
    return calls.complete_many(batch, results, worker)


def _fail_many(batch: Sequence[Item], worker: int | None) -> Call[list[Answer]]:
    errors = [_error(item.result.failed.error) for item in batch]
    pauses = [_pause(item.result.failed) for item in batch]
    return calls.fail_many(batch, errors, pauses, worker)


def _answered(index: int, answer: Answer) -> worker_pb2.Unsettled:
    if answer.answer == "busy":
        return worker_pb2.Unsettled(index=index, why=worker_pb2.WHY_BUSY)
    said = refusal(answer.job_id, answer.token, answer.reason, answer.current_token)
    return worker_pb2.Unsettled(index=index, why=worker_pb2.WHY_REFUSED, refusal=said)


def _refused(item: Item, reason: str, current_token: int | None) -> worker_pb2.Unsettled:
    said = refusal(item.job_id, item.token, reason, current_token)
    return worker_pb2.Unsettled(index=item.place, why=worker_pb2.WHY_REFUSED, refusal=said)


def _invalid(index: int, error: FaultlineError) -> worker_pb2.Unsettled:
    return worker_pb2.Unsettled(index=index, why=worker_pb2.WHY_INVALID, problem=told_of(error).problem)


def _in_trouble(index: int, trouble: Exception) -> worker_pb2.Unsettled:
    """Nothing was sent if there was no connection; else nobody knows, and rows will tell."""
    why = worker_pb2.WHY_UNSENT if isinstance(trouble, CannotConnect) else worker_pb2.WHY_UNKNOWN
    return worker_pb2.Unsettled(index=index, why=why, problem=told_of(trouble).problem)
