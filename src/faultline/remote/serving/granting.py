"""Granting: rows of a claim in, the message with its jobs out. The jobs of every worker go through here."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from faultline.remote.serving.cargo import Load
from faultline.remote.serving.translate import milliseconds
from faultline.remote.words import EPOCH_2000_US
from faultline.rpc.v1 import worker_pb2
from faultline.store.call import Row

AROUND_BYTES: Final = 8
"""What stands around a job in a message, at most."""


class Granted(NamedTuple):
    """The jobs an Ask came to, each now under a lease: as its worker gets them, and as the database said."""

    answer: worker_pb2.ToWorker
    rows: Sequence[Row]
    claim: bytes
    load: Load | None = None
    """The room it takes until it is written."""

    @property
    def jobs(self) -> Sequence[worker_pb2.Job]:
        return self.answer.assignments.jobs


def nothing() -> Granted:
    """What somebody gets who gets no more jobs here."""
    return granted([], b"", timedelta(0), timedelta(0), 0)


def granted(
    rows: Sequence[Row],
    claim: bytes,
    lease: timedelta,
    timeout: timedelta,
    waited_ms: int,
    load: Load | None = None,
) -> Granted:
    """The answer to an Ask. Its id is for whoever sends it to fill in."""
    answer = worker_pb2.ToWorker()
    # Written in place: a message that is put into another is copied, with all that is in it.
    answer.assignments.waited_ms = waited_ms
    _write(answer.assignments.jobs, rows, claim, lease, timeout)
    return Granted(answer, rows, claim, load)


def _write(jobs: Any, rows: Sequence[Row], claim: bytes, lease: timedelta, timeout: timedelta) -> None:
    """Add a job for each row.

    Those of one claim are much alike. What they share is put down once and copied, which takes a third of the
    time of naming each of fourteen fields.
    """
    forms: dict[Row, worker_pb2.Job] = {}
    # fmt: off
    for (id, token, attempt, attempts, crashes, task, queue, args, key, created_at, own, hard_end, retry,
         lane, pos, trace, due_at, claimed_at, priority, seed) in rows:
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
    """What jobs of one claim have in common."""
    token, attempt, attempts, crashes, task, queue, own, hard_end, retry, lane, priority = alike
    until = timeout if hard_end is None else hard_end
    return worker_pb2.Job(
        token=token, claim=claim, task=task, queue=queue, attempt=attempt, max_attempts=attempts,
        crashes=crashes, lease_ms=milliseconds(min(lease if own is None else own, until)),
        deadline_ms=milliseconds(until), retry=retry, lane=lane, priority=priority,
        timeout_ms=None if hard_end is None else milliseconds(hard_end),
    )  # fmt: skip


def named(jobs: Sequence[worker_pb2.Job]) -> list[worker_pb2.Job]:
    """The same jobs without what they weigh: enough to give them back."""
    return [worker_pb2.Job(id=job.id, token=job.token, claim=job.claim, queue=job.queue) for job in jobs]


def in_parts(whole: worker_pb2.ToWorker, bytes_max: int) -> list[worker_pb2.ToWorker]:
    """The same jobs in as few messages as they fit in; mostly that is one."""
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
