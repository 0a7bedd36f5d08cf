"""Lives: everything a job can live through by Faultline's own verbs, one function each."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import pytest

from faultline.errors import LeaseLost
from faultline.lease import Lease
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import LEASE, NOW, SECOND, Clock, claim_many, claim_one, enqueue

Life = Callable[[Store, Clock], int]
TICK = timedelta(seconds=1)


def _claimed(store: Store, **options: object) -> Lease:
    enqueue(store, **options)
    return claim_one(store)


def _expire(store: Store, clock: Clock) -> None:
    """Let every lease run out, and be reaped."""
    clock.advance(minutes=1)
    store.run(calls.reap())


def waits(store: Store, clock: Clock) -> int:
    """The job is enqueued, and no worker has claimed it."""
    return enqueue(store, queue="unserved")


def is_scheduled(store: Store, clock: Clock) -> int:
    return enqueue(store, delay=timedelta(hours=9))


def runs(store: Store, clock: Clock) -> int:
    lease = _claimed(store)
    store.run(calls.heartbeat([lease], LEASE))
    return lease.job_id


def succeeds(store: Store, clock: Clock) -> int:
    lease = _claimed(store)
    store.run(calls.complete(lease, '{"done": true}'))
    return lease.job_id


def succeeds_in_a_batch(store: Store, clock: Clock) -> int:
    ids = [enqueue(store, key=f"batch-{number}-{clock.now()}") for number in range(3)]
    leases = claim_many(store)
    store.run(calls.complete_many(leases, [None] * len(leases)))
    return ids[-1]


def succeeds_at_the_third_try(store: Store, clock: Clock) -> int:
    lease = _claimed(store)
    for _ in range(2):
        store.run(calls.fail(lease, "not yet", NOW))
        store.run(calls.promote())
        lease = claim_one(store)
    store.run(calls.complete(lease, None))
    return lease.job_id


def waits_for_its_retry(store: Store, clock: Clock) -> int:
    lease = _claimed(store)
    store.run(calls.fail_many([lease], ["not yet"], [SECOND * 900]))
    return lease.job_id


def is_snoozed_and_released(store: Store, clock: Clock) -> int:
    lease = _claimed(store)
    store.run(calls.snooze(lease, SECOND))
    clock.advance(seconds=2)
    store.run(calls.promote())
    lease = claim_one(store)
    store.run(calls.release(lease, "stopping"))
    lease = claim_one(store)
    store.run(calls.release(lease, "stopping", SECOND * 900))
    store.run(calls.retry_now(lease.job_id))
    store.run(calls.complete(claim_one(store), None))
    return lease.job_id


def crashes_and_succeeds(store: Store, clock: Clock) -> int:
    lease = _claimed(store)
    _expire(store, clock)
    store.run(calls.promote())
    again = claim_one(store)
    with pytest.raises(LeaseLost):
        store.run(calls.complete(lease, None))
    store.run(calls.refused(lease))
    store.run(calls.complete(again, None))
    with pytest.raises(LeaseLost):
        store.run(calls.complete(again, None))
    store.run(calls.refused(again))
    return lease.job_id


def crashes_again_and_again(store: Store, clock: Clock) -> int:
    lease = _claimed(store, max_attempts=3)
    for _ in range(2):
        _expire(store, clock)
        clock.advance(minutes=6)
        store.run(calls.promote())
        lease = claim_one(store)
    _expire(store, clock)
    return lease.job_id


def dies_of_failures(store: Store, clock: Clock) -> int:
    lease = _claimed(store, max_attempts=1, key=f"dies-{clock.now()}")
    store.run(calls.fail(lease, "never", NOW))
    return lease.job_id


def is_buried(store: Store, clock: Clock) -> int:
    lease = _claimed(store)
    store.run(calls.bury(lease, "no use"))
    return lease.job_id


def is_replayed_and_waits(store: Store, clock: Clock) -> int:
    job_id = crashes_again_and_again(store, clock)
    store.run(calls.replay(job_id))
    return job_id


def is_replayed_and_runs(store: Store, clock: Clock) -> int:
    job_id = is_replayed_and_waits(store, clock)
    claim_one(store)
    return job_id


def is_replayed_twice_and_succeeds(store: Store, clock: Clock) -> int:
    job_id = dies_of_failures(store, clock)
    store.run(calls.replay(job_id))
    store.run(calls.fail(claim_one(store), "never", NOW))
    store.run(calls.replay(job_id))
    store.run(calls.complete(claim_one(store), None))
    return job_id


def is_cancelled_while_it_waits(store: Store, clock: Clock) -> int:
    job_id = enqueue(store)
    store.run(calls.cancel(job_id, "not wanted"))
    return job_id


def is_cancelled_after_a_failure(store: Store, clock: Clock) -> int:
    job_id = waits_for_its_retry(store, clock)
    store.run(calls.cancel(job_id))
    return job_id


def is_cancelled_while_it_runs(store: Store, clock: Clock) -> int:
    lease = _claimed(store)
    store.run(calls.cancel(lease.job_id))
    store.run(calls.heartbeat([lease], LEASE))
    store.run(calls.complete_many([lease], [None]))
    return lease.job_id


def is_dropped_by_its_handler(store: Store, clock: Clock) -> int:
    lease = _claimed(store)
    store.run(calls.cancel_claimed(lease, "not wanted"))
    return lease.job_id


def is_outlined(store: Store, clock: Clock) -> int:
    store.run(calls.set_retention("outlined", "outline"))
    job_id = enqueue(store, queue="outlined")
    store.run(calls.complete(claim_one(store, queues=("outlined",)), None))
    return job_id


def fails_once_and_leaves_nothing(store: Store, clock: Clock) -> int:
    store.run(calls.set_retention("silent", "nothing"))
    job_id = enqueue(store, queue="silent", key=f"silent-{clock.now()}")
    store.run(calls.fail(claim_one(store, queues=("silent",)), "not yet", NOW))
    store.run(calls.promote())
    store.run(calls.complete(claim_one(store, queues=("silent",)), None))
    return job_id


def is_forgotten_after_its_death(store: Store, clock: Clock) -> int:
    job_id = dies_of_failures(store, clock)
    clock.advance(days=91)
    store.run(calls.prune())
    return job_id


LIVES: Final[tuple[Life, ...]] = (
    waits, is_scheduled, runs, succeeds, succeeds_in_a_batch, succeeds_at_the_third_try, waits_for_its_retry,
    is_snoozed_and_released, crashes_and_succeeds, crashes_again_and_again, dies_of_failures, is_buried,
    is_replayed_and_waits, is_replayed_and_runs, is_replayed_twice_and_succeeds, is_cancelled_while_it_waits,
    is_cancelled_after_a_failure, is_cancelled_while_it_runs, is_dropped_by_its_handler, is_outlined,
    fails_once_and_leaves_nothing, is_forgotten_after_its_death,
)  # fmt: skip
