"""Jobs that are enqueued in a transaction of the user's own, and the wake-ups after its commit."""

from collections.abc import Iterable
from functools import partial

from faultline.client import traced_send
from faultline.client.bulk import BulkEnqueue, is_due
from faultline.client.sender import Sender
from faultline.connections import AwaitedConnection, PlainConnection
from faultline.job import NewJob
from faultline.store import calls
from faultline.store.carrier import Carrier, async_carrier, plain_carrier
from faultline.store.rows import MadeJob


def enqueue_in(sender: Sender, conn: PlainConnection, new: NewJob) -> MadeJob:
    """Put one job in its queue with the user's commit."""
    carrier = plain_carrier(conn, "enqueue_in")
    made = traced_send.send(new, lambda new: carrier.run(calls.enqueue_one(new)))
    if is_due(new):
        _wake_after_commit(sender, carrier, {new.queue})
    return made


async def aenqueue_in(sender: Sender, conn: AwaitedConnection, new: NewJob) -> MadeJob:
    """The same for async code."""
    carrier = async_carrier(conn, "aenqueue_in")
    made = await traced_send.asend(new, lambda new: carrier.run(calls.enqueue_one(new)))
    if is_due(new):
        carrier.after_commit(partial(sender.hint_soon, new.queue))
    return made


def enqueue_many_in(sender: Sender, conn: PlainConnection, jobs: Iterable[NewJob]) -> list[int]:
    """Put many jobs in their queues with the user's commit."""
    carrier, bulk = plain_carrier(conn, "enqueue_many_in"), BulkEnqueue(jobs)
    with traced_send.bulk_in_span(bulk):
        for call in bulk.calls():
            bulk.add(carrier.run(call))
    _wake_after_commit(sender, carrier, bulk.due_queues)
    return bulk.ids


async def aenqueue_many_in(sender: Sender, conn: AwaitedConnection, jobs: Iterable[NewJob]) -> list[int]:
    """The same for async code."""
    carrier, bulk = async_carrier(conn, "aenqueue_many_in"), BulkEnqueue(jobs)
    with traced_send.bulk_in_span(bulk):
        for call in bulk.calls():
            bulk.add(await carrier.run(call))
    for queue in bulk.due_queues:
        carrier.after_commit(partial(sender.hint_soon, queue))
    return bulk.ids


def _wake_after_commit(sender: Sender, carrier: Carrier, queues: Iterable[str]) -> None:
    for queue in queues:
        carrier.after_commit(partial(sender.hint, queue))
