"""What a round costs depends on the lanes in use, not on all that were ever made."""

import pytest

from faultline.store import calls
from tests.support import LEASE, SECOND, claim_one, enqueue

MANY = """
insert into faultline.queues (name) select 'q' || n from generate_series(1, 20000) as n;
insert into faultline.lanes (queue, priority) select name, 0 from faultline.queues on conflict do nothing;
analyze faultline.lanes
"""
PROBES = """
select coalesce(sum(idx_scan), 0)::int from pg_stat_user_indexes
where schemaname = 'faultline' and relname = 'active'
"""


def probes(db):
    """How often this session has searched the jobs; told to the statistics by itself."""
    db.execute("select pg_stat_force_next_flush()")
    return db.execute(PROBES).fetchone()[0]


def lane(db):
    return db.execute("select top, floor from faultline.lanes where queue = 'default'").fetchone()


def test_a_lane_that_was_found_empty_is_as_new(store, db):
    enqueue(store)
    lease = claim_one(store)
    db.execute("update faultline.lanes set floor = 1")
    assert store.run(calls.quiet_lanes()) == 0

    store.run(calls.complete(lease, "null"))

    assert store.run(calls.quiet_lanes()) == 1
    assert lane(db) == (0, 0)


def test_a_quiet_lane_that_is_used_again_is_reaped_again(store, clock, db):
    enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    store.run(calls.quiet_lanes())
    store.run(calls.reap())  # the walk of the minute
    enqueue(store)
    lost = claim_one(store)
    assert lane(db)[0] > 0
    db.execute(
        "update faultline.rounds set walked_at = faultline.now() + interval '20 s', hold_until = '-infinity'"
    )

    clock.advance(LEASE + SECOND)

    assert [reaped.job_id for reaped in store.run(calls.reap())] == [lost.job_id]


def test_once_a_minute_quiet_lanes_are_walked_too(store, clock, db):
    """A claim under way while its lane was made quiet leaves no trace there."""
    enqueue(store)
    lost = claim_one(store)
    db.execute("update faultline.lanes set top = 0")

    clock.advance(minutes=2)

    assert [reaped.job_id for reaped in store.run(calls.reap())] == [lost.job_id]


def test_a_round_looks_at_the_lanes_in_use_only(store, clock, db):
    enqueue(store)
    claim_one(store)
    db.execute(MANY)
    db.execute("select * from faultline.reap()")  # the walk of the minute
    before = probes(db)

    for _ in range(3):
        for verb in ("reap", "rescue", "floors"):
            db.execute(f"select * from faultline.{verb}()")

    assert probes(db) - before < 100


@pytest.mark.parametrize("term", ["1000 years", "61 seconds", "-1 second"])
def test_a_lead_has_a_bound(store, db, term):
    with pytest.raises(Exception, match="a lead lasts from 0 to 60 seconds"):
        db.execute("select faultline.lead(1, %s)", [term])

    assert store.run(calls.lead(2))


def test_a_lead_that_no_lead_can_be_is_taken_over(store, db):
    """Written by hand, by an older version, or before the clock was set back."""
    db.execute("update faultline.rounds set leader = 1, leads_until = now() + interval '1000 years'")

    assert store.run(calls.lead(2))
    assert not store.run(calls.lead(3))


def test_a_leader_that_does_nothing_is_seen(store, clock, db):
    store.run(calls.round_(SECOND))
    store.run(calls.reap())
    store.run(calls.lead(1))
    store.run(calls.floors())
    clock.advance(minutes=10)
    store.run(calls.round_(SECOND))
    store.run(calls.reap())
    store.run(calls.lead(1))

    facts = store.run(calls.doctor())

    assert facts.round_age_seconds < 60 < 500 < facts.chores_age_seconds
    assert facts.leader == "1"
    store.run(calls.floors())
    assert store.run(calls.doctor()).chores_age_seconds < 60
