"""What is old and finished goes, a bounded batch at a time; nothing else does."""

from datetime import timedelta

import pytest

from faultline.errors import OutOfBounds
from faultline.store import calls
from tests.support import claim_one, enqueue, row_counts, state_of, worker_named

NOTHING = (0, 0, 0, 0, 0)


def buried(store, **options):
    job_id = enqueue(store, **options)
    store.run(calls.bury(claim_one(store), "no use"))
    return job_id


def refused_once(store):
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.cancel(lease.job_id))
    store.run(calls.refused(lease))


def test_a_fresh_installation_has_nothing_to_prune(store, database):
    before = row_counts(database)

    assert store.run(calls.prune()) == NOTHING
    assert row_counts(database) == before


def test_lapsed_keys_go_and_others_stay(store, clock, database):
    enqueue(store, key="short", key_for=timedelta(hours=1))
    enqueue(store, key="long", key_for=timedelta(days=30))
    for _ in range(2):
        store.run(calls.complete(claim_one(store), "null"))
    enqueue(store, key="alive", key_for=timedelta(hours=1))
    clock.advance(days=2)

    pruned = store.run(calls.prune())

    assert pruned == (1, 0, 0, 0, 0)
    assert row_counts(database)["keys"] == 2


def test_old_refusals_go_after_the_ledgers_retention(store, clock):
    refused_once(store)
    clock.advance(days=6)
    early = store.run(calls.prune())
    clock.advance(days=2)

    assert early == NOTHING
    assert store.run(calls.prune()) == (0, 1, 0, 0, 0)
    assert store.run(calls.refusals()) == []


def test_the_long_dead_go_after_their_own_retention(store, clock):
    job_id = buried(store)
    clock.advance(days=89)
    early = store.run(calls.prune())
    clock.advance(days=2)

    assert early == NOTHING
    assert store.run(calls.prune()) == (0, 0, 1, 0, 0)
    assert state_of(store, job_id) is None


def test_workers_long_gone_go(store, clock):
    worker_named(store, "gone")
    clock.advance(days=6)
    stays = worker_named(store, "here")
    clock.advance(days=2)
    store.run(calls.heartbeat([], timedelta(seconds=15), stays))

    assert store.run(calls.prune()) == (0, 0, 0, 1, 0)


def test_a_batch_is_bounded(store, clock):
    for _ in range(5):
        buried(store)
    clock.advance(days=91)

    batches = [store.run(calls.prune(most=2))[2] for _ in range(4)]

    assert batches == [2, 2, 1, 0]


def test_a_locked_row_is_not_waited_for(store, clock, db):
    held = buried(store)
    buried(store)
    clock.advance(days=91)

    with db.transaction():
        db.execute("select from faultline.dead where id = %s for update", [held])
        pruned = store.run(calls.prune())

    assert pruned == (0, 0, 1, 0, 0)
    assert state_of(store, held) == "dead"


def test_the_dead_retention_can_be_set(store, clock):
    store.run(calls.configure(dead_retention=timedelta(days=1)))
    buried(store)
    clock.advance(days=2)

    assert store.run(calls.prune())[2] == 1


@pytest.mark.parametrize("setting", ["ledger_retention", "dead_retention"])
def test_a_retention_is_an_hour_or_more(store, setting):
    store.run(calls.configure(**{setting: timedelta(hours=1)}))

    with pytest.raises(OutOfBounds, match="for an hour or more"):
        store.run(calls.configure(**{setting: timedelta(minutes=59)}))


@pytest.mark.parametrize("seconds", [0, 0.499, 86401])
def test_the_default_lease_has_a_leases_bounds(store, seconds):
    with pytest.raises(OutOfBounds):
        store.run(calls.configure(default_lease=timedelta(seconds=seconds)))


def test_a_setting_left_out_stays(store, db):
    store.run(calls.configure(default_lease=timedelta(seconds=20), dead_retention=timedelta(days=2)))

    store.run(calls.configure(ledger_retention=timedelta(days=3)))

    kept = db.execute("select default_lease, ledger_retention, dead_retention from faultline.settings")
    assert kept.fetchone() == (timedelta(seconds=20), timedelta(days=3), timedelta(days=2))
