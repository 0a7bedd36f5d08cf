"""queued -> running: who gets which jobs, in which order, and never more than asked."""

import json
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from faultline.errors import OutOfBounds
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import LEASE, NOW, all_at_once, claim_many, claim_one, enqueue, holding, new_job, state_of


def rows_claimed(store, room, *queues, **options):
    """The rows of a claim in the order in which they came."""
    return store.run(calls.claim(queues or ["default"], room, lease=LEASE, claim=uuid4(), **options))


def test_a_claimed_job_is_running_under_a_lease(store):
    job_id = enqueue(store)

    lease = claim_one(store)

    job = store.run(calls.get(job_id))
    assert (job.state, job.token, job.attempt) == ("running", lease.token, 1)
    assert job.lease_until - job.claimed_at == LEASE


def test_a_queue_without_jobs_gives_nothing(store):
    assert claim_many(store) == []
    assert claim_many(store, queues=("never-heard-of",)) == []


def test_the_oldest_job_comes_first(store):
    ids = [enqueue(store) for _ in range(5)]

    assert [claim_one(store).job_id for _ in range(5)] == ids


def test_a_lower_priority_number_comes_first(store):
    ordinary = enqueue(store)
    slow = enqueue(store, priority=100)
    urgent = enqueue(store, priority=-100)

    assert [claim_one(store).job_id for _ in range(3)] == [urgent, ordinary, slow]


def test_one_claim_takes_from_several_priorities_in_their_order(store):
    slow = [enqueue(store, priority=5) for _ in range(2)]
    urgent = [enqueue(store, priority=-5) for _ in range(2)]

    taken = claim_many(store, 3)

    assert [lease.job_id for lease in taken] == sorted([*urgent, slow[0]])


def test_a_claim_looks_only_at_the_queues_it_names(store):
    mail = enqueue(store, queue="mail")
    enqueue(store, queue="billing")
    paper = enqueue(store, queue="paper")

    taken = claim_many(store, queues=("mail", "paper"))

    assert [lease.job_id for lease in taken] == [mail, paper]


def test_priority_counts_across_queues(store):
    enqueue(store, queue="mail")
    urgent = enqueue(store, queue="paper", priority=-1)

    assert claim_one(store, queues=("mail", "paper")).job_id == urgent


def test_queues_of_one_priority_take_turns_by_chance(store):
    """No queue starves another because of its name or its place in the list."""
    for queue in ("a", "b"):
        store.run(calls.enqueue_many([new_job(queue=queue) for _ in range(40)]))

    seen = {row.queue for _ in range(40) for row in rows_claimed(store, 1, "a", "b")}

    assert seen == {"a", "b"}


def test_a_claim_takes_no_more_than_there_is_room_for(store):
    store.run(calls.enqueue_many([new_job() for _ in range(20)]))

    assert len(claim_many(store, 7)) == 7
    assert len(claim_many(store, 1000)) == 13


@pytest.mark.parametrize("room", [0, -1, 1001])
def test_room_goes_from_1_to_1000(store, room):
    enqueue(store)

    with pytest.raises(OutOfBounds, match="from 1 to 1000"):
        claim_many(store, room)


def test_room_that_is_not_given_is_not_taken_for_all_there_is(store, db):
    store.run(calls.enqueue_many([new_job() for _ in range(3)]))

    with pytest.raises(psycopg.Error, match="from 1 to 1000"):
        db.execute("select * from faultline.claim(array['default'], null, '15 s', gen_random_uuid())")

    assert len(claim_many(store)) == 3


@pytest.mark.parametrize("plan", ["nested loops", "hash joins", "merge joins"])
def test_no_plan_makes_a_claim_take_more_than_asked(store, db, plan):
    """An UPDATE over a sub-select with LIMIT took five rows for one under a nested loop."""
    store.run(calls.enqueue_many([new_job(priority=0) for _ in range(600)]))
    store.run(calls.enqueue_many([new_job(priority=1) for _ in range(600)]))
    claim = db.execute("select oid::regprocedure::text from pg_proc where proname = 'claim'").fetchone()[0]
    forced = {"nested loops": "nestloop", "hash joins": "hashjoin", "merge joins": "mergejoin"}[plan]
    for kind in ("nestloop", "hashjoin", "mergejoin"):
        db.execute(f"alter function {claim} set enable_{kind} = {'on' if kind == forced else 'off'}")

    assert [len(claim_many(store, room)) for room in (1, 500, 250)] == [1, 500, 250]


def test_claims_at_once_never_share_a_job(store):
    store.run(calls.enqueue_many([new_job() for _ in range(400)]))

    claims = all_at_once(8, lambda _: [lease for _ in range(5) for lease in claim_many(store, 10)])

    taken = [lease.job_id for claim in claims for lease in claim]
    assert len(taken) == len(set(taken)) == 400


def test_a_claim_steps_over_a_locked_row(store, database):
    held, free = enqueue(store), enqueue(store)

    with holding(database, held):
        taken = claim_many(store)

    assert [lease.job_id for lease in taken] == [free]


def test_a_running_job_is_not_claimed_again_even_when_its_lease_ran_out(store, clock):
    """Only the watchdog takes expired leases, so that crashes are counted in one place."""
    enqueue(store)
    claim_one(store)
    clock.advance(hours=2)

    assert claim_many(store) == []


def test_nothing_is_claimed_from_a_paused_queue(store):
    job_id = enqueue(store)
    store.run(calls.pause("default"))

    assert claim_many(store) == []

    store.run(calls.resume("default"))

    assert claim_one(store).job_id == job_id


def test_a_jobs_own_lease_goes_before_the_workers(store):
    job_id = enqueue(store, lease_for=timedelta(minutes=3))

    claim_one(store, lease=timedelta(seconds=5))

    job = store.run(calls.get(job_id))
    assert job.lease_until - job.claimed_at == timedelta(minutes=3)


@pytest.mark.parametrize(
    ("own", "workers", "deadline"),
    [(None, timedelta(minutes=9), 540.0), (timedelta(minutes=2), timedelta(minutes=9), 120.0)],
)
def test_the_hard_end_is_the_jobs_own_or_else_the_workers(store, db, own, workers, deadline):
    enqueue(store, timeout=own)

    claim_one(store, timeout=workers)

    seconds = db.execute(
        "select extract(epoch from deadline_at - claimed_at) from faultline.active"
    ).fetchone()[0]
    assert float(seconds) == deadline


def test_a_lease_never_begins_longer_than_the_hard_end(store):
    job_id = enqueue(store, timeout=timedelta(seconds=2))

    claim_one(store)

    job = store.run(calls.get(job_id))
    assert job.lease_until - job.claimed_at == timedelta(seconds=2)


def test_each_claim_counts_as_an_attempt(store):
    enqueue(store)
    store.run(calls.fail(claim_one(store), "boom", NOW))
    store.run(calls.promote())

    (row,) = rows_claimed(store, 1)

    assert row.attempt == 2


def test_asking_again_returns_what_the_claim_holds(store):
    """For a worker whose reply was lost: the same rows, the same tokens, no second attempt."""
    enqueue(store)
    enqueue(store, queue="mail")
    claim = uuid4()
    first = claim_many(store, queues=("default", "mail"), claim=claim)

    again = claim_many(store, queues=("default", "mail"), claim=claim, resend=True)

    assert [lease.proof for lease in again] == [lease.proof for lease in first]
    assert [state.attempt for state in store.run(calls.list_jobs(state="running"))] == [1, 1]


def test_asking_again_takes_nothing_new(store):
    enqueue(store)

    assert claim_many(store, claim=uuid4(), resend=True) == []
    assert len(claim_many(store)) == 1


def test_asking_again_leaves_out_what_was_lost_meanwhile(store, clock):
    enqueue(store)
    claim = uuid4()
    claim_many(store, claim=claim)
    clock.advance(minutes=1)
    store.run(calls.reap())

    assert claim_many(store, claim=claim, resend=True) == []


def test_a_claim_that_rolls_back_leaves_its_jobs_free(store, database):
    job_id = enqueue(store)

    with psycopg.connect(database) as conn:
        Store.run_in(conn, calls.claim(["default"], 1, lease=LEASE, claim=uuid4()))
        meanwhile = claim_many(store)
        conn.rollback()

    assert meanwhile == []
    assert state_of(store, job_id) == "queued"
    assert claim_one(store).job_id == job_id


def test_a_worker_is_named_by_the_jobs_it_holds(store):
    worker = store.run(calls.worker_started("ada", "host", 7, ["default"], 10, "0"))
    job_id = enqueue(store)

    claim_one(store, worker=worker)

    assert store.run(calls.get(job_id)).worker == "ada"


@pytest.mark.parametrize("seconds", [0, 0.499, 86401])
def test_a_lease_outside_its_bounds_is_refused(store, seconds):
    enqueue(store)

    with pytest.raises(OutOfBounds, match="a lease lasts from half a second to one day"):
        claim_many(store, lease=timedelta(seconds=seconds))


@pytest.mark.parametrize("timeout", [timedelta(milliseconds=99), timedelta(days=31)])
def test_a_timeout_outside_its_bounds_is_refused(store, timeout):
    enqueue(store)

    with pytest.raises(OutOfBounds, match="a timeout is from 100 milliseconds to 30 days"):
        claim_many(store, timeout=timeout)


def weighing(size: int) -> str:
    return '{"a": "' + "x" * (size - 9) + '"}'


def test_a_claim_is_bounded_by_bytes_and_leaves_the_rest_free(store):
    ids = [enqueue(store, args=weighing(1_000)) for _ in range(5)]

    first = rows_claimed(store, 5, bytes_max=3_500)
    assert [row.id for row in first] == ids[:3]
    assert [state_of(store, job_id) for job_id in ids] == ["running"] * 3 + ["queued"] * 2
    assert [row.id for row in rows_claimed(store, 5, bytes_max=3_500)] == ids[3:]


def test_the_first_job_is_taken_whatever_it_weighs(store):
    ids = [enqueue(store, args=weighing(100_000)) for _ in range(2)]

    assert [row.id for row in rows_claimed(store, 2, bytes_max=1)] == ids[:1]
    assert [row.id for row in rows_claimed(store, 2, bytes_max=1)] == ids[1:]


def test_a_retry_policy_counts_at_its_length_and_has_a_bound(store, db):
    """Compressed it may be a hundredth of that, and every claim of the job brings all of it."""
    policy = json.dumps({"padding": "x" * 8_000})
    for _ in range(5):
        db.execute("select faultline.enqueue('charge', '{}', retry => %s::jsonb)", [policy])

    assert len(rows_claimed(store, 5, bytes_max=20_000)) == 2
    for call in ("enqueue('charge', '{}',", "enqueue_many('charge', array['{}'],"):
        with pytest.raises(psycopg.errors.CheckViolation, match="a_retry_policy_has_at_most_8192_bytes"):
            db.execute(f"select faultline.{call} retry => %s::jsonb)", [json.dumps({"padding": "x" * 8_192})])


def test_a_claim_that_names_no_bytes_brings_no_more_than_16_mebibytes(store):
    large = weighing(1_048_576)
    store.run(calls.enqueue_many([new_job(args=large)] * 20))

    assert len(rows_claimed(store, 1_000)) == 16
    assert len(rows_claimed(store, 1_000)) == 4


def test_what_a_claim_holds_is_told_again_as_far_as_it_fits(store):
    """One claim id that was used for many claims must not bring all they hold at once."""
    ids = [enqueue(store, args=weighing(1_000)) for _ in range(4)]
    claim = uuid4()
    for _ in range(2):
        store.run(calls.claim(["default"], 2, lease=LEASE, claim=claim))

    again = calls.claim(["default"], 10, lease=LEASE, claim=claim, resend=True, bytes_max=2_500)
    assert sorted(row.id for row in store.run(again)) == ids[:2]
