"""Settling: results in, one answer for each that was not accepted. The fence is the database's, as ever."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, assert_never

import psycopg

from faultline import bounds
from faultline.errors import CannotConnect, DatabaseError, FaultlineError, InputError, LeaseLost
from faultline.lease import Lease
from faultline.outcome import Cancel, Crashed, Dead, Done, Failed, Outcome, Released, Snooze
from faultline.remote.serving.problems import MALFORMED, TurnedAway, told_of
from faultline.remote.serving.rights import Rights
from faultline.remote.serving.translate import leases, refusal, span
from faultline.rpc.v1 import worker_pb2
from faultline.store import calls
from faultline.store.rows import Answer
from faultline.store.run import AsyncStore
from faultline.worker.settle import RETRY_PAUSE, as_text, settle

ERROR_CHARS_MAX: Final = 8_192

Item = tuple[int, Lease, Outcome | str]
"""Its place in the message, its lease, and its outcome, or a problem that only reading it showed."""


class Settling:
    """Records outcomes: successes together, failures together, the rest singly."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def settle(
        self, results: worker_pb2.Results, worker: int | None, rights: Rights, most: int
    ) -> worker_pb2.Settled:
        """Record all of them; in `rest`, one line for each that was not accepted."""
        items: list[Item] = []
        rest: list[worker_pb2.Unsettled] = []
        named = leases(results.items, most)
        theirs = await rights.keep(named)
        for index, (lease, result) in enumerate(zip(named, results.items, strict=True)):
            if lease not in theirs:  # as if it did not exist: whether it does is not said
                rest.append(_refused(index, lease, "gone", None))
                continue
            try:
                items.append((index, lease, outcome_of(result)))
            except InputError as error:
                rest.append(_invalid(index, error))
        done = [item for item in items if isinstance(item[2], Done)]
        failed = [item for item in items if isinstance(item[2], Failed)]
        for batch, many in ((done, _complete_many), (failed, _fail_many)):
            if batch:
                rest += await self._settle_many(batch, many(batch, worker), worker)
        for item in items:
            if not isinstance(item[2], Done | Failed):
                rest += await self._settle_one(item, worker)
        accepted = len(results.items) - len(rest)
        return worker_pb2.Settled(id=results.id, accepted=accepted, rest=rest)

    async def _settle_many(
        self, batch: list[Item], call: calls.Call[list[Answer]], worker: int | None
    ) -> list[worker_pb2.Unsettled]:
        """One call for all of them; who is not answered for got through."""
        try:
            answers = await self._store.run(call)
        except InputError:  # one of them breaks a rule, and none was recorded: singly, to find out which
            rest = []
            for item in batch:
                rest += await self._settle_one(item, worker)
            return rest
        except (DatabaseError, psycopg.Error, TimeoutError) as trouble:
            return [_in_trouble(index, trouble) for index, _, _ in batch]
        places = {lease[:2]: index for index, lease, _ in batch}
        return [_answered(places[answer.job_id, answer.token], answer) for answer in answers]

    async def _settle_one(self, item: Item, worker: int | None) -> list[worker_pb2.Unsettled]:
        index, lease, outcome = item
        assert not isinstance(outcome, str)
        try:
            await self._store.run(settle(lease, outcome))
        except LeaseLost:
            return [await self._note_refusal(index, lease, worker)]
        except InputError as error:
            return [_invalid(index, error)]
        except (DatabaseError, psycopg.Error, TimeoutError) as trouble:
            return [_in_trouble(index, trouble)]
        return []

    async def _note_refusal(self, index: int, lease: Lease, worker: int | None) -> worker_pb2.Unsettled:
        try:
            reason, current_token = await self._store.run(calls.refused(lease, worker))
        except (DatabaseError, psycopg.Error, TimeoutError) as trouble:
            return _in_trouble(index, trouble)
        return _refused(index, lease, reason, current_token)


def outcome_of(result: worker_pb2.Result) -> Outcome:
    """How an attempt ended, or InputError for what cannot be recorded."""
    match result.WhichOneof("outcome"):
        case "done":
            return Done(_text(result.done.result) if result.done.result else None)
        case "failed":
            return Failed(_error(result.failed.error), _delay(result.failed) or RETRY_PAUSE)
        case "snoozed":
            return Snooze(span("delay_ms", result.snoozed.delay_ms), result.snoozed.reason)
        case "released":
            return Released(as_text(result.released.reason))
        case "crashed":
            return _crashed(result.crashed)
        case "buried":
            return Dead(result.buried.reason)
        case "dropped":
            return Cancel(result.dropped.reason)
        case None:
            raise TurnedAway(MALFORMED, f"the result of job {result.job_id} does not say how it ended")
        case unknown:
            assert_never(unknown)


def _crashed(said: worker_pb2.Crashed) -> Crashed:
    most = bounds.check_max_crashes(said.max_crashes) if said.HasField("max_crashes") else 3
    return Crashed(_error(said.error), as_text(said.signature, 200), _delay(said), said.alone, most)


def _delay(said: Any) -> timedelta | None:
    return span("delay_ms", said.delay_ms) if said.HasField("delay_ms") else None


def _error(text: str) -> str:
    return as_text(text, ERROR_CHARS_MAX)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InputError("a result is JSON in UTF-8; this one is no UTF-8") from None


def _complete_many(batch: Sequence[Item], worker: int | None) -> calls.Call[list[Answer]]:
    results = [outcome.result for _, _, outcome in batch if isinstance(outcome, Done)]
    return calls.complete_many([lease for _, lease, _ in batch], results, worker)


def _fail_many(batch: Sequence[Item], worker: int | None) -> calls.Call[list[Answer]]:
    said = [outcome for _, _, outcome in batch if isinstance(outcome, Failed)]
    pauses = [RETRY_PAUSE if outcome.delay is None else outcome.delay for outcome in said]
    return calls.fail_many(
        [lease for _, lease, _ in batch], [outcome.error for outcome in said], pauses, worker
    )


def _answered(index: int, answer: Answer) -> worker_pb2.Unsettled:
    if answer.answer == "busy":
        return worker_pb2.Unsettled(index=index, why=worker_pb2.WHY_BUSY)
    said = refusal(answer.job_id, answer.token, answer.reason, answer.current_token)
    return worker_pb2.Unsettled(index=index, why=worker_pb2.WHY_REFUSED, refusal=said)


def _refused(index: int, lease: Lease, reason: str, current_token: int | None) -> worker_pb2.Unsettled:
    said = refusal(lease.job_id, lease.token, reason, current_token)
    return worker_pb2.Unsettled(index=index, why=worker_pb2.WHY_REFUSED, refusal=said)


def _invalid(index: int, error: FaultlineError) -> worker_pb2.Unsettled:
    return worker_pb2.Unsettled(index=index, why=worker_pb2.WHY_INVALID, problem=told_of(error).problem)


def _in_trouble(index: int, trouble: Exception) -> worker_pb2.Unsettled:
    """Nothing was sent if there was no connection; else nobody knows, and rows will tell."""
    why = worker_pb2.WHY_UNSENT if isinstance(trouble, CannotConnect) else worker_pb2.WHY_UNKNOWN
    return worker_pb2.Unsettled(index=index, why=why, problem=told_of(trouble).problem)
