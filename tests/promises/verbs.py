"""The verbs a worker ends a lease with, and how a lease is lost."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from faultline.lease import Lease
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.pool import Store
from tests.support import LEASE, NOW, Clock, claim_one, enqueue

Verb = Callable[[Lease], Call[Any]]

SETTLING: Mapping[str, Verb] = {
    "complete": lambda lease: calls.complete(lease, "null"),
    "fail": lambda lease: calls.fail(lease, "boom", NOW),
    "crash": lambda lease: calls.crash(lease, "boom", "SIGSEGV", alone=True, delay=NOW),
    "snooze": lambda lease: calls.snooze(lease, timedelta(seconds=5)),
    "release": calls.release,
    "bury": lambda lease: calls.bury(lease, "no good"),
    "cancel_claimed": lambda lease: calls.cancel_claimed(lease, "not wanted"),
}
"""Each ends the lease, once; a lease that is lost gets LS001."""

FENCED: Mapping[str, Verb] = {**SETTLING, "fence": calls.fence}

OUTCOMES = {
    "complete": "succeeded",
    "fail": "failed",
    "crash": "failed",
    "snooze": "snoozed",
    "release": "released",
    "bury": "dead",
    "cancel_claimed": "cancelled",
}
"""What the ledger says of a lease that each verb ended."""


def reaped_lease(store: Store, clock: Clock) -> Lease:
    """A lease that ran out and was taken back; its job waits for the next claim."""
    enqueue(store)
    asleep = claim_one(store)
    clock.advance(LEASE * 2)
    assert [late.job_id for late in store.run(calls.reap())] == [asleep.job_id]
    return asleep


def retaken(store: Store, clock: Clock) -> tuple[Lease, Lease]:
    """A lease that was lost, and the newer lease of the same job."""
    asleep = reaped_lease(store, clock)
    store.run(calls.promote())
    awake = claim_one(store)
    assert awake.job_id == asleep.job_id
    return asleep, awake
