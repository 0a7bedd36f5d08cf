"""Claims and heartbeats of a worker as messages to a server, and the server's answers."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from faultline.errors import CannotConnect, FaultlineError, ServerUnavailable
from faultline.lease import Lease
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.store.call import Row
from faultline.store.rows import HeartbeatResult
from faultline.worker.backend import ClaimParams, LeaseName

PROTOCOL: Final = 1

EPOCH_2000_US: Final = 946_684_800_000_000
"""The moment from which the database counts, in microseconds since 1970."""

PULSES: Final = {
    rpc.PULSE_HELD: "held",
    rpc.PULSE_LOST: "lost",
    rpc.PULSE_CANCEL: "cancel",
    rpc.PULSE_BUSY: "busy",
}

ENDS: Final = {end: name.removeprefix("END_").lower() for name, end in rpc.End.items() if end}
"""How a lease ended, by the word of the ledger."""


def milliseconds(duration: timedelta) -> int:
    """A duration of the protocol; rounded up, so that nothing comes before its time.

    >>> milliseconds(timedelta(seconds=1, microseconds=1))
    1001
    """
    return -(-duration // timedelta(milliseconds=1))


# claims


def ask(params: ClaimParams, limits: rpc.Limits, *, resend: bool = False) -> rpc.Ask:
    return rpc.Ask(
        room=min(params.max_jobs, limits.room_max or params.max_jobs),
        queues=params.queues,
        claim=params.claim.bytes,
        again=resend,
        begins=[rpc.Begin(lane=lane, place=place) for lane, place in params.begins.items()],
        trace=params.trace or "",
        except_tasks=params.except_tasks[: limits.except_tasks_max],
    )


def claimed(answer: rpc.Assignments, lease: timedelta) -> list[Row]:
    """The claimed jobs, in the columns of `ClaimedRow`."""
    if answer.HasField("trouble"):
        raise trouble(answer.trouble)
    return list(_claimed(answer.jobs, milliseconds(lease)))


def _claimed(jobs: Sequence[rpc.Job], usual_lease_ms: int) -> Iterator[Row]:
    """Plain tuples: to make a `ClaimedRow` by its names takes as long as to read the job's message."""
    for job in jobs:
        own, measured = job.lease_ms, job.HasField("pickup_us")
        yield (
            job.id, job.token, job.attempt, job.max_attempts, job.crashes, job.task, job.queue,
            job.args.decode(), job.key if job.HasField("key") else None, job.created_at_us - EPOCH_2000_US,
            None if own == usual_lease_ms else timedelta(milliseconds=own),
            timedelta(milliseconds=job.timeout_ms) if job.HasField("timeout_ms") else None,
            job.retry if job.HasField("retry") else None, job.lane, job.place, job.trace or None,
            # Of due_at and claimed_at only the difference is known here, and only it is asked for.
            *((0, job.pickup_us) if measured else (None, None)), job.priority,
            job.key_seed if job.HasField("key_seed") else None, None,
        )  # fmt: skip


def trouble(met: rpc.Trouble) -> FaultlineError:
    """The server's error behind the call, with the one difference that matters: it may have been done."""
    words = f"the server could not do it now: {met.problem.message}"
    return ServerUnavailable(words) if met.unknown else CannotConnect(words)


# beats


def proof(lease: Lease) -> rpc.Proof:
    return rpc.Proof(job_id=lease.job_id, token=lease.token, claim=lease.claim.bytes)


def names(leases: Sequence[LeaseName]) -> list[rpc.LeaseName]:
    return [rpc.LeaseName(job_id=job_id, token=token) for job_id, token in leases]


def beaten(asked: Sequence[rpc.Proof], answer: rpc.Beaten) -> list[HeartbeatResult]:
    """The results of a heartbeat; an unknown word renews nothing."""
    if answer.HasField("trouble"):
        raise trouble(answer.trouble)
    if len(answer.answers) != len(asked):
        raise ServerUnavailable("the server answered another beat than was sent")
    return [
        HeartbeatResult(proof.job_id, proof.token, PULSES.get(pulse, "busy"))
        for proof, pulse in zip(asked, answer.answers, strict=True)
    ]
