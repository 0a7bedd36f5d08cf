"""The floor of a lane: a hint that cannot make anything wrong, and rescue for what it passed over."""

import psycopg
import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.support import NOW, claim_many, claim_one, enqueue, new_job


def finish(store, many):
    """Enqueue and complete so many jobs: they leave dead places behind."""
    for _ in range(many // 1000):
        store.run(calls.enqueue_many([new_job(args="null") for _ in range(1000)]))
        leases = claim_many(store, 1000)
        store.run(calls.complete_many(leases, ["null"] * len(leases)))


def skip_places(db, many):
    """As if so many jobs had come and gone."""
    db.execute("select setval('faultline.places', nextval('faultline.places') + %s)", [many])


def floor(db, queue="default"):
    return db.execute("select floor from faultline.lanes where queue = %s", [queue]).fetchone()[0]


def look_twice(store, clock):
    store.run(calls.floors())
    clock.advance(seconds=1)
    return store.run(calls.floors())


def test_a_floor_rises_to_the_first_free_place(store, clock, db):
    done = enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    skip_places(db, 6000)
    free = enqueue(store)

    raised = look_twice(store, clock)

    assert raised == 1
    assert floor(db) == free
    assert done < free == claim_one(store).job_id


def test_a_floor_steps_over_what_is_running(store, clock, db):
    enqueue(store)
    lease = claim_one(store)
    skip_places(db, 6000)
    free = enqueue(store)

    look_twice(store, clock)

    assert floor(db) == free
    store.run(calls.complete(lease, "null"))


def test_a_floor_never_passes_a_free_job(store, clock, db):
    waiting = enqueue(store)
    skip_places(db, 6000)
    enqueue(store)

    look_twice(store, clock)

    assert floor(db) <= waiting
    assert claim_one(store).job_id == waiting


def test_a_floor_moves_only_when_it_can_move_5000_places(store, clock, db):
    enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    skip_places(db, 4900)
    enqueue(store)

    raised = look_twice(store, clock)

    assert (raised, floor(db)) == (0, 0)


def test_a_floor_rises_to_the_newest_place_when_nothing_is_free(store, clock, db):
    enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    skip_places(db, 6000)

    look_twice(store, clock)

    assert floor(db) > 6000
    job_id = enqueue(store)
    assert claim_one(store).job_id == job_id


def test_one_look_alone_moves_nothing(store, db):
    enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    skip_places(db, 6000)

    raised = store.run(calls.floors())
    again_at_once = store.run(calls.floors())

    assert (raised, again_at_once, floor(db)) == (0, 0, 0)


def test_a_commit_between_two_looks_is_never_passed_over(store, clock, database, db):
    """The floor is the lesser of two looks, a tick apart."""
    enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))

    with psycopg.connect(database) as slow:
        late = Store.run_in(slow, calls.enqueue(new_job()))
        skip_places(db, 6000)
        store.run(calls.floors())
        slow.commit()
    clock.advance(seconds=1)
    store.run(calls.floors())

    assert floor(db) <= late
    assert claim_one(store).job_id == late


def test_the_lesser_of_two_looks_holds_when_the_second_sees_further(store, clock, db):
    enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    skip_places(db, 6000)
    seen_first = enqueue(store)
    store.run(calls.floors())
    claim_one(store)
    skip_places(db, 6000)
    enqueue(store)
    clock.advance(seconds=1)

    store.run(calls.floors())

    assert floor(db) == seen_first


def test_a_floor_never_falls(store, clock, db):
    enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    skip_places(db, 6000)
    look_twice(store, clock)
    before = floor(db)
    enqueue(store)

    look_twice(store, clock)

    assert floor(db) >= before


def test_every_lane_has_its_own_floor(store, clock, db):
    stays = enqueue(store, queue="slow")
    enqueue(store, queue="quick")
    store.run(calls.complete(claim_one(store, queues=("quick",)), "null"))
    skip_places(db, 6000)

    look_twice(store, clock)

    assert floor(db, "slow") <= stays
    assert floor(db, "quick") > 6000


def late_committer(store, clock, database, db):
    """A job whose enqueuing transaction stayed open while the floor rose past its place."""
    enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    with psycopg.connect(database) as slow:
        late = Store.run_in(slow, calls.enqueue(new_job()))
        skip_places(db, 6000)
        look_twice(store, clock)
        slow.commit()
    return late


def test_a_late_committer_behind_the_floor_gets_a_new_place(store, clock, database, db):
    late = late_committer(store, clock, database, db)
    unseen = claim_many(store)

    rescued = store.run(calls.rescue())

    assert unseen == []
    assert rescued == [late]
    assert claim_one(store).job_id == late


def test_rescue_leaves_everything_else_where_it_is(store, clock, database, db):
    late_committer(store, clock, database, db)
    store.run(calls.rescue())

    assert store.run(calls.rescue()) == []


def test_rescue_leaves_running_jobs_behind_the_floor_alone(store, clock, db):
    enqueue(store)
    lease = claim_one(store)
    skip_places(db, 6000)
    look_twice(store, clock)

    assert store.run(calls.rescue()) == []
    store.run(calls.complete(lease, "null"))


def test_rescue_skips_a_locked_row(store, clock, database, db):
    late = late_committer(store, clock, database, db)

    with db.transaction():
        db.execute("select from faultline.active where id = %s for update", [late])
        held = store.run(calls.rescue())

    assert held == []
    assert store.run(calls.rescue()) == [late]


def test_jobs_that_come_back_stand_above_the_floor(store, clock, db):
    ids = store.run(calls.enqueue_many([new_job() for _ in range(4)]))
    leases = claim_many(store)
    skip_places(db, 6000)
    look_twice(store, clock)
    released, failed, snoozed, _expired = leases

    store.run(calls.release(released))
    store.run(calls.fail(failed, "boom", NOW))
    store.run(calls.snooze(snoozed, NOW))
    clock.advance(minutes=1)
    store.run(calls.reap())
    store.run(calls.promote())

    assert [lease.job_id for lease in claim_many(store)] == ids


PAGES = """
select relation.relname::text, pg_stat_get_xact_blocks_fetched(relation.oid)
from pg_class as relation where relation.relnamespace = 'faultline'::regnamespace
"""


def pages_touched_by_a_claim(db):
    """How many pages of each of our tables and indexes one claim reads; what it took is given up again.

    The catalog's do not count: whenever the server throws a session's caches away, which strangers' DDL can
    bring about in any database of the server, the next claim reads 1,700 pages of it, once.
    """
    claim = "select from faultline.claim(array['default'], 1, '15 s', gen_random_uuid())"
    with db.transaction(force_rollback=True):
        db.execute(claim)  # plans are made here: planning looks at the ends of an index
    with db.transaction(force_rollback=True):
        before = dict(db.execute(PAGES).fetchall())
        db.execute(claim)
        after = dict(db.execute(PAGES).fetchall())
    return {name: pages - before[name] for name, pages in after.items() if pages > before[name]}


def active_pages(touched):
    return sum(pages for name, pages in touched.items() if name.startswith("active"))


def test_a_claim_works_while_an_old_transaction_pins_the_horizon(store, clock, database, db):
    """Vacuum can clear nothing away; the floor lets claims step over it."""
    with psycopg.connect(database) as pin:
        pin.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        pin.execute("select pg_current_xact_id()")
        finish(store, 6000)
        job_id = enqueue(store)
        without = active_pages(pages_touched_by_a_claim(db))

        look_twice(store, clock)
        touched = active_pages(pages_touched_by_a_claim(db))
        lease = claim_one(store)

    assert touched * 10 < without
    assert lease.job_id == job_id


STRANGERS = """
do $$
begin
  for number in 1..1000 loop
    execute 'create temp table passing (a int)';
    execute 'drop table passing';
  end loop;
end
$$
"""


@pytest.mark.parametrize(
    "event", [STRANGERS, "analyze faultline.active", "vacuum analyze faultline.active", "analyze", "vacuum"],
    ids=["strangers", "analyze active", "vacuum active", "analyze", "vacuum"],
)  # fmt: skip
def test_a_claim_that_is_planned_again_reads_the_same_pages(store, clock, database, db, event):
    """The caches are lost, or the statistics change: few live rows on many pages, none, one alone."""
    with psycopg.connect(database) as pin, psycopg.connect(database, autocommit=True) as other:
        pin.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        pin.execute("select pg_current_xact_id()")
        finish(store, 2000)
        skip_places(db, 6000)
        enqueue(store)
        look_twice(store, clock)
        before = active_pages(pages_touched_by_a_claim(db))
        other.execute(event)
        after = active_pages(pages_touched_by_a_claim(db))

        # A page more or less is no other plan: a full page may be pruned before the claim's update.
        assert max(before, after) < 12
