"""How attempts ended, as messages to a server, and its answers as the database would have given them."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from faultline.errors import CannotConnect, FaultlineError, InputError, ServerUnavailable
from faultline.remote.channel import REASONS, lease_lost
from faultline.remote.words import Args, milliseconds
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.store.call import Row

MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""What a server takes that does not say what it takes."""

HEADROOM_BYTES: Final = 1024

UNFORESEEN: Final = "unforeseen"
"""The code of a problem that only the server's log can explain."""

_NOTHING: Final = rpc.Done()


class RowBusy(Exception):
    """The job's row is locked just now: nothing changed, and it may be said again in a moment."""


def many(args: Args) -> list[rpc.Result]:
    """A batch that ended alike: all done, or all failed."""
    leases = zip(args["ids"].values, args["tokens"].values, args["claims"].values, strict=True)
    if "errors" in args:
        pairs = zip(args["errors"].values, args["delays"].values, strict=True)
        return [
            rpc.Result(job_id=id, token=token, claim=claim.bytes, failed=_failed(error, delay))
            for (id, token, claim), (error, delay) in zip(leases, pairs, strict=True)
        ]
    if args["results"] is None:
        return [
            rpc.Result(job_id=id, token=token, claim=claim.bytes, done=_NOTHING)
            for id, token, claim in leases
        ]
    return [
        rpc.Result(job_id=id, token=token, claim=claim.bytes, done=_done(result))
        for (id, token, claim), result in zip(leases, args["results"].values, strict=True)
    ]


def one(name: str, args: Args) -> rpc.Result:
    """A single settling, by the name of its call."""
    said = _SINGLES[name](args)
    return rpc.Result(job_id=args["job_id"], token=args["token"], claim=args["claim"].bytes, **said)


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


def parcels(items: Sequence[rpc.Result], limits: rpc.Limits) -> Iterator[list[rpc.Result]]:
    """The same in as many messages as the server's limits ask for; mostly that is one."""
    most = limits.items_max or len(items)
    room = (limits.message_bytes_max or MESSAGE_BYTES_MAX) - HEADROOM_BYTES
    parcel: list[rpc.Result] = []
    weight = 0
    for item in items:
        bytes_ = item.ByteSize() + 8
        if parcel and (len(parcel) >= most or weight + bytes_ > room):
            yield parcel
            parcel, weight = [], 0
        parcel.append(item)
        weight += bytes_
    if parcel:
        yield parcel


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
