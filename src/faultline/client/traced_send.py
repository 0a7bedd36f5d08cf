"""Sends jobs in a span of their own, where a tracer is installed; the span's context travels with them."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import msgspec

from faultline.client.bulk import BulkEnqueue
from faultline.job import NewJob
from faultline.store.rows import MadeJob
from faultline.telemetry import tracing
from faultline.telemetry.tracing import Sending, quietly


def send(new: NewJob, carry: Callable[[NewJob], MadeJob]) -> MadeJob:
    """Send one job; a context that the caller gave it already stays."""
    if tracing.tracer is None or new.trace is not None:
        return carry(new)
    with _in_span(new) as (traced, sending):
        made = carry(traced)
        _sent(sending, made.id, new)
    return made


async def asend(new: NewJob, carry: Callable[[NewJob], Awaitable[MadeJob]]) -> MadeJob:
    """The same for async code."""
    if tracing.tracer is None or new.trace is not None:
        return await carry(new)
    with _in_span(new) as (traced, sending):
        made = await carry(traced)
        _sent(sending, made.id, new)
    return made


@contextmanager
def bulk_in_span(bulk: BulkEnqueue) -> Iterator[None]:
    """One span for all jobs of a batch, whatever their queues."""
    sending = tracing.sending(None, None)
    if sending is None:
        yield
        return
    bulk.trace = sending.trace
    try:
        yield
    except BaseException as error:
        quietly(sending.end, None, len(bulk.ids), None, error)
        raise
    queues = {queue for queue, _ in bulk.counts}
    quietly(sending.end, None, len(bulk.ids), queues.pop() if len(queues) == 1 else None, None)


@contextmanager
def _in_span(new: NewJob) -> Iterator[tuple[NewJob, Sending | None]]:
    sending = tracing.sending(new.queue, new.task)
    if sending is None:
        yield new, None
        return
    try:
        yield msgspec.structs.replace(new, trace=sending.trace), sending
    except BaseException as error:
        quietly(sending.end, None, 1, new.queue, error)
        raise


def _sent(sending: Sending | None, job_id: int, new: NewJob) -> None:
    if sending is not None:
        quietly(sending.end, job_id, 1, new.queue, None)
