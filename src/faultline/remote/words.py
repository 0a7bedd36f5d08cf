"""Calls of a worker as messages to a server, and its answers as the rows that the database would give."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from faultline.errors import CannotConnect, FaultlineError, ServerUnavailable
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.store.call import Row

PROTOCOL: Final = 1

EPOCH_2000_US: Final = 946_684_800_000_000
"""The moment from which the database counts, in microseconds since 1970."""

PULSES: Final = {
    rpc.PULSE_HELD: "held",
    rpc.PULSE_LOST: "lost",
    rpc.PULSE_CANCEL: "cancel",
    rpc.PULSE_BUSY: "busy",
}

ENDS: Final = {
    rpc.END_RUNNING: "running",
    rpc.END_SUCCEEDED: "succeeded",
    rpc.END_FAILED: "failed",
    rpc.END_EXPIRED: "expired",
    rpc.END_SNOOZED: "snoozed",
    rpc.END_RELEASED: "released",
    rpc.END_CANCELLED: "cancelled",
    rpc.END_DEAD: "dead",
    rpc.END_GONE: "gone",
}

Args = dict[str, Any]


def milliseconds(duration: timedelta) -> int:
    """A duration as the protocol has it; rounded up, so that nothing comes before its time.

    >>> milliseconds(timedelta(seconds=1, microseconds=1))
    1001
    """
    return -(-duration // timedelta(milliseconds=1))


# claims


def ask(args: Args, limits: rpc.Limits) -> rpc.Ask:
    begins = zip(args["lanes"].values, args["places"].values, strict=True) if "lanes" in args else ()
    return rpc.Ask(
        room=min(args["room"], limits.room_max or args["room"]),
        queues=args["queues"].values,
        claim=args["claim"].bytes,
        again=args["again"],
        begins=[rpc.Begin(lane=lane, place=place) for lane, place in begins],
        trace=args.get("trace") or "",
        except_tasks=args["except_tasks"].values[: limits.except_tasks_max] if "except_tasks" in args else (),
    )


def claimed(answer: rpc.Assignments, lease: timedelta) -> list[Row]:
    """The rows of a claim."""
    if answer.HasField("trouble"):
        raise trouble(answer.trouble)
    return list(_claimed(answer.jobs, milliseconds(lease)))


def _claimed(jobs: Sequence[rpc.Job], lease_ms: int) -> Iterator[Row]:
    for job in jobs:
        own = job.lease_ms
        yield (
            job.id, job.token, job.attempt, job.max_attempts, job.crashes, job.task, job.queue,
            job.args.decode(), job.key if job.HasField("key") else None, job.created_at_us - EPOCH_2000_US,
            None if own == lease_ms else timedelta(milliseconds=own),
            timedelta(milliseconds=job.timeout_ms) if job.HasField("timeout_ms") else None,
            job.retry if job.HasField("retry") else None, job.lane, job.place, job.trace or None,
            *((0, job.pickup_us) if job.HasField("pickup_us") else (None, None)), job.priority,
            job.key_seed if job.HasField("key_seed") else None,
        )  # fmt: skip


def trouble(met: rpc.Trouble) -> FaultlineError:
    """What was in the way behind the server, with the one difference that matters: may it have been done?"""
    words = f"the server could not do it now: {met.problem.message}"
    return ServerUnavailable(words) if met.unknown else CannotConnect(words)


# beats


def proofs(args: Args) -> list[rpc.Proof]:
    return [
        rpc.Proof(job_id=id, token=token, claim=claim.bytes)
        for id, token, claim in zip(
            args["ids"].values, args["tokens"].values, args["claims"].values, strict=True
        )
    ]


def names(args: Args) -> list[rpc.LeaseName]:
    return [
        rpc.LeaseName(job_id=id, token=token)
        for id, token in zip(args["ids"].values, args["tokens"].values, strict=True)
    ]


def beaten(asked: Sequence[rpc.Proof], answer: rpc.Beaten) -> list[Row]:
    """The rows of a heartbeat; a word we do not know renews nothing."""
    if answer.HasField("trouble"):
        raise trouble(answer.trouble)
    if len(answer.answers) != len(asked):
        raise ServerUnavailable("the server answered another beat than was sent")
    return [
        (proof.job_id, proof.token, PULSES.get(pulse, "busy"))
        for proof, pulse in zip(asked, answer.answers, strict=True)
    ]
