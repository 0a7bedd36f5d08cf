"""How attempts ended, as messages to a server, and its answers as the database would have given them."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import repeat
from typing import Any, Final

from faultline.errors import CannotConnect, FaultlineError, InputError, ServerUnavailable
from faultline.remote.channel import REASONS, lease_lost
from faultline.remote.words import Args, milliseconds
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.store.call import Row
from faultline.store.line import OUTAGE

MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""What a server takes that does not say what it takes."""

HEADROOM_BYTES: Final = 1024

PARCELS_AT_ONCE: Final = 4
LINES: Final = 4
"""Who may send results at the same time, at most: a server counts all of them together."""

UNFORESEEN: Final = "unforeseen"
"""The code of a problem that only the server's log can explain."""

_NOTHING: Final = rpc.Done()


class RowBusy(Exception):
    """The job's row is locked just now: nothing changed, and it may be said again in a moment."""


def many(args: Args) -> rpc.FromWorker:
    """A batch that ended alike: all done, or all failed."""
    said = rpc.FromWorker()
    if "errors" in args:
        pairs = zip(args["errors"].values, args["delays"].values, strict=True)
        for item, (error, delay) in zip(_named(said, args, rpc.Result()), pairs, strict=True):
            item.failed.error, item.failed.delay_ms = error, milliseconds(delay)
        return said
    results = repeat(None) if args["results"] is None else args["results"].values
    for item, result in zip(_named(said, args, rpc.Result(done=_NOTHING)), results, strict=False):
        if result is not None:
            item.done.result = result.encode()
    return said


def _named(said: rpc.FromWorker, args: Args, form: rpc.Result) -> Iterator[rpc.Result]:
    """Add a result for each lease, otherwise like the form.

    In place, and copied from one for each claim, as jobs come by the hundred from one: a message that is put
    into another is copied whole, and each field that is named costs a look into the library's tables.
    """
    add, last = said.results.items.add, None
    for id, token, claim in zip(
        args["ids"].values, args["tokens"].values, args["claims"].values, strict=True
    ):
        if claim is not last or token != form.token:
            last, form.token, form.claim = claim, token, claim.bytes
        item = add()
        item.CopyFrom(form)
        item.job_id = id
        yield item


def one(name: str, args: Args) -> rpc.FromWorker:
    """A single settling, by the name of its call."""
    said = rpc.FromWorker()
    lease = {"job_id": args["job_id"], "token": args["token"], "claim": args["claim"].bytes}
    said.results.items.add(**lease, **_SINGLES[name](args))
    return said


def _done(result: str | None) -> rpc.Done:
    return _NOTHING if result is None else rpc.Done(result=result.encode())


def _failed(error: str, delay: timedelta) -> rpc.Failed:
    return rpc.Failed(error=error, delay_ms=milliseconds(delay))


def _crashed(args: Args) -> rpc.Crashed:
    crashed = rpc.Crashed(
        error=args["error"], signature=args["signature"], alone=args["alone"],
        max_crashes=args["max_crashes"],
    )  # fmt: skip
    if args["delay"] is not None:
        crashed.delay_ms = milliseconds(args["delay"])
    return crashed


_SINGLES: Final[dict[str, Callable[[Args], dict[str, Any]]]] = {
    "complete": lambda args: {"done": _done(args["result"])},
    "fail": lambda args: {"failed": _failed(args["error"], args["delay"])},
    "crash": lambda args: {"crashed": _crashed(args)},
    "bury": lambda args: {"buried": rpc.Buried(reason=args["reason"], error=args["error"] or "")},
    "snooze": lambda args: {
        "snoozed": rpc.Snoozed(delay_ms=milliseconds(args["delay"]), reason=args["reason"])
    },
    "release": lambda args: {
        "released": rpc.Released(delay_ms=milliseconds(args["delay"]), reason=args["reason"])
    },
    "drop_claimed": lambda args: {"dropped": rpc.Dropped(reason=args["reason"])},
}
SINGLES: Final = frozenset(_SINGLES)


def parcels(whole: rpc.FromWorker, limits: rpc.Limits) -> Iterator[rpc.FromWorker]:
    """The same in as many messages as the server's limits ask for; mostly that is one."""
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
    """How many parcels of a batch may wait for their answers: others of this worker have some to send too.

    >>> at_once(rpc.Limits(unanswered_max=32)), at_once(rpc.Limits(unanswered_max=1))
    (4, 1)
    """
    return max(1, min(PARCELS_AT_ONCE, limits.unanswered_max // LINES))


def answers(items: Sequence[rpc.Result], settled: rpc.Settled) -> list[Row]:
    """The rows of a batch: one for each that did not get through.

    What was in the way of single ones is theirs alone: `alone` has each said again by itself, after a look at
    the rows where it may have been recorded. What was in the way of all is raised, as the database's own is.
    """
    _raise_if_all(items, settled)
    told: list[Row] = []
    for rest in settled.rest:
        item = items[rest.index]
        match rest.why:
            case rpc.WHY_REFUSED:
                lost = lease_lost(rest.refusal)
                told.append((item.job_id, item.token, "refused", lost.reason, lost.current_token))
            case rpc.WHY_BUSY:
                told.append((item.job_id, item.token, "busy", None, None))
            case rpc.WHY_UNSENT | rpc.WHY_INVALID:
                told.append((item.job_id, item.token, "alone", "unsent", None))
            case _:
                told.append((item.job_id, item.token, "alone", "unknown", None))
    return told


def together(parcels: Sequence[rpc.FromWorker], answered: Sequence[list[Row] | BaseException]) -> list[Row]:
    """The rows of a batch that went out in parcels.

    What was in the way of all of them is raised. What was in the way of one is no matter of the others, which
    are recorded: each of its items is said again by itself.
    """
    troubles = [said for said in answered if isinstance(said, BaseException)]
    if troubles and (
        len(troubles) == len(parcels) or not all(isinstance(met, FaultlineError) for met in troubles)
    ):
        raise max(troubles, key=_leaves_open)
    told: list[Row] = []
    for parcel, said in zip(parcels, answered, strict=True):
        if isinstance(said, BaseException):
            word = "unknown" if _leaves_open(said) else "unsent"
            told += [(item.job_id, item.token, "alone", word, None) for item in parcel.results.items]
        else:
            told += said
    return told


def _leaves_open(trouble: BaseException) -> bool:
    """Whether it may have been recorded all the same: then rows are asked before it is said again."""
    return isinstance(trouble, OUTAGE) and not isinstance(trouble, CannotConnect)


def _raise_if_all(items: Sequence[rpc.Result], settled: rpc.Settled) -> None:
    """Nothing at all could be recorded, or nobody knows of any of it: that is no item's fault."""
    whys = {rest.why for rest in settled.rest}
    if len(settled.rest) == len(items) and whys in ({rpc.WHY_UNSENT}, {rpc.WHY_UNKNOWN}):
        words = _words(settled.rest[0])
        raise CannotConnect(words) if whys == {rpc.WHY_UNSENT} else ServerUnavailable(words)


def answer(settled: rpc.Settled) -> list[Row]:
    """The row of a single settling, or the error that the database would have raised."""
    for rest in settled.rest:
        match rest.why:
            case rpc.WHY_REFUSED:
                raise lease_lost(rest.refusal)
            case rpc.WHY_BUSY:
                raise RowBusy("its row is locked just now")
            case rpc.WHY_INVALID:
                raise InputError(rest.problem.message)
            case rpc.WHY_UNSENT:
                raise CannotConnect(_words(rest))
            case _ if rest.problem.code == UNFORESEEN:
                # Not a matter of time: said again and again, it would keep its lease from everybody for good.
                raise FaultlineError(_words(rest))
            case _:
                raise ServerUnavailable(_words(rest))
    return [("",)]


def refused(refusal: rpc.Refusal) -> list[Row]:
    """The row of `refused`: why, and the newest token of the job."""
    current = refusal.current_token if refusal.HasField("current_token") else None
    return [(REASONS.get(refusal.reason, "gone"), current)]


def _words(rest: rpc.Unsettled) -> str:
    return f"the server could not record it now ({rest.problem.code}): {rest.problem.message}"
