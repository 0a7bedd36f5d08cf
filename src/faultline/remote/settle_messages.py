"""Outcomes of attempts as messages to a server, and the server's answers."""

from collections.abc import Iterator, Sequence
from typing import Final

from faultline.errors import CannotConnect, FaultlineError, InputError, ServerUnavailable
from faultline.lease import Held
from faultline.outcome import Outcome
from faultline.remote.channel import REASONS, lease_lost
from faultline.remote.outcome_messages import write
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.store.rows import SettleRefusal
from faultline.store.session import OUTAGE

MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""The limits of a server that does not tell its own."""

HEADROOM_BYTES: Final = 1024

PARCELS_AT_ONCE: Final = 4
LINES: Final = 4
"""The bound on senders of results at the same time: a server counts all of them together."""

UNFORESEEN: Final = "unforeseen"
"""The code of a problem that only the server's log can explain."""


class RemoteRowBusy(Exception):
    """The job's row is locked at the moment: nothing changed, and it may be sent again soon."""


def many(leases: Sequence[Held], outcomes: Sequence[Outcome]) -> rpc.FromWorker:
    """A message with an outcome for each lease.

    In place, and copied from one for each claim, as jobs come by the hundred from one: a message that is put
    into another is copied whole, and each named field costs a lookup in the library's tables.
    """
    said, form, last, told = rpc.FromWorker(), rpc.Result(), None, None
    add = said.results.items.add
    for lease, outcome in zip(leases, outcomes, strict=True):
        claim, token = lease.claim, lease.token
        if claim is not last or token != form.token:
            last, form.token, form.claim = claim, token, claim.bytes
        if outcome is not told:
            told = outcome
            write(form, outcome)
        item = add()
        item.CopyFrom(form)
        item.job_id = lease.job_id
    return said


def one(lease: Held, outcome: Outcome) -> rpc.FromWorker:
    """A single settling."""
    return many([lease], [outcome])


def parcels(whole: rpc.FromWorker, limits: rpc.Limits) -> Iterator[rpc.FromWorker]:
    """The same in as many messages as the server's limits require; mostly that is one."""
    items = whole.results.items
    most = limits.items_max or len(items)
    bytes_max = (limits.message_bytes_max or MESSAGE_BYTES_MAX) - HEADROOM_BYTES
    if items and len(items) <= most and whole.ByteSize() <= bytes_max:
        yield whole
        return
    parcel, room = rpc.FromWorker(), bytes_max
    for item in items:
        weight = item.ByteSize() + 8
        if parcel.results.items and (len(parcel.results.items) >= most or weight > room):
            yield parcel
            parcel, room = rpc.FromWorker(), bytes_max
        parcel.results.items.append(item)
        room -= weight
    if items:
        yield parcel


def at_once(limits: rpc.Limits) -> int:
    """The parcels of a batch that may wait for answers: other batches of this worker need room too.

    >>> at_once(rpc.Limits(unanswered_max=32)), at_once(rpc.Limits(unanswered_max=1))
    (4, 1)
    """
    return max(1, min(PARCELS_AT_ONCE, limits.unanswered_max // LINES))


def answers(items: Sequence[rpc.Result], settled: rpc.Settled) -> list[SettleRefusal]:
    """The refused items of a batch.

    An obstacle to single items concerns them alone: `alone` sends each again by itself, after a check of the
    rows where it may have been recorded. An obstacle to all is raised, as the database's own is.
    """
    _raise_if_all(items, settled)
    told: list[SettleRefusal] = []
    for rest in settled.rest:
        item = items[rest.index]
        match rest.why:
            case rpc.WHY_REFUSED:
                lost = lease_lost(rest.refusal)
                told.append(
                    SettleRefusal(item.job_id, item.token, "refused", lost.reason, lost.current_token)
                )
            case rpc.WHY_BUSY:
                told.append(SettleRefusal(item.job_id, item.token, "busy", None, None))
            case rpc.WHY_UNSENT | rpc.WHY_INVALID:
                told.append(SettleRefusal(item.job_id, item.token, "alone", "unsent", None))
            case _:
                told.append(SettleRefusal(item.job_id, item.token, "alone", "unknown", None))
    return told


def together(
    parcels: Sequence[rpc.FromWorker], answered: Sequence[list[SettleRefusal] | BaseException]
) -> list[SettleRefusal]:
    """The refused items of a batch that went out in parcels.

    An obstacle to all of them is raised. An obstacle to one parcel does not concern the others, which are
    recorded: each of its items is sent again by itself.
    """
    troubles = [said for said in answered if isinstance(said, BaseException)]
    if troubles and (
        len(troubles) == len(parcels) or not all(isinstance(met, FaultlineError) for met in troubles)
    ):
        raise max(troubles, key=_leaves_open)
    told: list[SettleRefusal] = []
    for parcel, said in zip(parcels, answered, strict=True):
        if isinstance(said, BaseException):
            word = "unknown" if _leaves_open(said) else "unsent"
            told += [
                SettleRefusal(item.job_id, item.token, "alone", word, None) for item in parcel.results.items
            ]
        else:
            told += said
    return told


def _leaves_open(trouble: BaseException) -> bool:
    """Whether it may have been recorded all the same: then rows are checked before it is sent again."""
    return isinstance(trouble, OUTAGE) and not isinstance(trouble, CannotConnect)


def _raise_if_all(items: Sequence[rpc.Result], settled: rpc.Settled) -> None:
    """Nothing at all could be recorded, or the outcome of all is unknown: no single item is the cause."""
    whys = {rest.why for rest in settled.rest}
    if len(settled.rest) == len(items) and whys in ({rpc.WHY_UNSENT}, {rpc.WHY_UNKNOWN}):
        words = _words(settled.rest[0])
        raise CannotConnect(words) if whys == {rpc.WHY_UNSENT} else ServerUnavailable(words)


def check(settled: rpc.Settled) -> None:
    """Raise the error that the database would have raised for a single settling."""
    for rest in settled.rest:
        match rest.why:
            case rpc.WHY_REFUSED:
                raise lease_lost(rest.refusal)
            case rpc.WHY_BUSY:
                raise RemoteRowBusy("its row is locked just now")
            case rpc.WHY_INVALID:
                raise InputError(rest.problem.message)
            case rpc.WHY_UNSENT:
                raise CannotConnect(_words(rest))
            case _ if rest.problem.code == UNFORESEEN:
                # A lasting refusal: endless repeats would keep the job's lease from all other workers.
                raise FaultlineError(_words(rest))
            case _:
                raise ServerUnavailable(_words(rest))


def refused(refusal: rpc.Refusal) -> tuple[str, int | None]:
    """The reason, and the newest token of the job."""
    current = refusal.current_token if refusal.HasField("current_token") else None
    return REASONS.get(refusal.reason, "gone"), current


def _words(rest: rpc.Unsettled) -> str:
    return f"the server could not record it now ({rest.problem.code}): {rest.problem.message}"
