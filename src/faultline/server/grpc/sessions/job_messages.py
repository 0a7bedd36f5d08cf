"""Messages of assigned jobs: rows of a claim in, the message out, for every worker."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from faultline.remote.call_messages import EPOCH_2000_US
from faultline.rpc.v1 import worker_pb2
from faultline.server.grpc.messages import milliseconds
from faultline.server.throttling.payload_budget import PayloadShare
from faultline.store.call import Row

AROUND_BYTES: Final = 8
"""The largest size of the fields around a job in a message."""


class Granted(NamedTuple):
    """The jobs of an Ask, each now under a lease: as messages, and as the database returned them."""

    answer: worker_pb2.ToWorker
    rows: Sequence[Row]
    claim: bytes
    load: PayloadShare | None = None
    """The room that it takes until it is written."""

    @property
    def jobs(self) -> Sequence[worker_pb2.Job]:
        return self.answer.assignments.jobs


def nothing() -> Granted:
    """The answer to a worker that gets no more jobs here."""
    return granted([], b"", timedelta(0), timedelta(0), 0)


def granted(
    rows: Sequence[Row],
    claim: bytes,
    lease: timedelta,
    timeout: timedelta,
    waited_ms: int,
    load: PayloadShare | None = None,
) -> Granted:
    """The answer to an Ask. The sender fills in its id."""
    answer = worker_pb2.ToWorker()
    # Built in place: a message that is put into another one is copied with all its content.
    answer.assignments.waited_ms = waited_ms
    _write(answer.assignments.jobs, rows, claim, lease, timeout)
    return Granted(answer, rows, claim, load)


def _write(jobs: Any, rows: Sequence[Row], claim: bytes, lease: timedelta, timeout: timedelta) -> None:
    """Add a job for each row.

    Jobs of one claim are much alike. Their common part is built once and copied, which takes a third of the
    time of setting each of fourteen fields.
    """
    forms: dict[Row, worker_pb2.Job] = {}
    # fmt: off
    for (id, token, attempt, attempts, crashes, task, queue, args, key, created_at, own, hard_end, retry,
         lane, pos, trace, due_at, claimed_at, priority, seed, _) in rows:
        alike = (token, attempt, attempts, crashes, task, queue, own, hard_end, retry, lane, priority)
        form = forms.get(alike)
        if form is None:
            form = forms[alike] = _form(alike, claim, lease, timeout)
        job = jobs.add()
        job.CopyFrom(form)
        job.id = id
        job.args = args.encode()
        job.created_at_us = created_at + EPOCH_2000_US
        job.place = pos
        if key is not None:
            job.key = key
        if trace:
            job.trace = trace
        if seed is not None:
            job.key_seed = seed
        if due_at is not None and claimed_at is not None:
            job.pickup_us = claimed_at - due_at
    # fmt: on


def _form(alike: Row, claim: bytes, lease: timedelta, timeout: timedelta) -> worker_pb2.Job:
    """The common part of the jobs of one claim."""
    token, attempt, attempts, crashes, task, queue, own, hard_end, retry, lane, priority = alike
    until = timeout if hard_end is None else hard_end
    return worker_pb2.Job(
        token=token, claim=claim, task=task, queue=queue, attempt=attempt, max_attempts=attempts,
        crashes=crashes, lease_ms=milliseconds(min(lease if own is None else own, until)),
        deadline_ms=milliseconds(until), retry=retry, lane=lane, priority=priority,
        timeout_ms=None if hard_end is None else milliseconds(hard_end),
    )  # fmt: skip


def named(jobs: Sequence[worker_pb2.Job]) -> list[worker_pb2.Job]:
    """The same jobs without their payloads: enough to give them back."""
    return [worker_pb2.Job(id=job.id, token=job.token, claim=job.claim, queue=job.queue) for job in jobs]


PART_SHARE: Final = 0.9
"""The part of a message that assignments may fill: the rest is for the fields around them."""


def in_parts(whole: worker_pb2.ToWorker, bytes_max: int) -> list[worker_pb2.ToWorker]:
    """The same jobs in as few messages as possible; mostly that is one."""
    if whole.ByteSize() <= bytes_max:
        return [whole]
    parts: list[worker_pb2.ToWorker] = []
    room = 0
    for job in whole.assignments.jobs:
        weight = job.ByteSize() + AROUND_BYTES
        if not parts or weight > room:
            parts.append(_part(whole.assignments))
            room = bytes_max
        parts[-1].assignments.jobs.append(job)
        room -= weight
    parts[-1].assignments.more = False
    return parts


def _part(whole: worker_pb2.Assignments) -> worker_pb2.ToWorker:
    part = worker_pb2.ToWorker()
    part.assignments.id, part.assignments.waited_ms, part.assignments.more = whole.id, whole.waited_ms, True
    return part
