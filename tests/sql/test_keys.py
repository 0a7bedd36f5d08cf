"""A key makes two enqueues the same job: while the job lives, and for its window afterwards."""

from datetime import timedelta

import pytest

from faultline.errors import BadName, KeyConflict, OutOfBounds
from faultline.store import calls
from tests.support import NOW, all_at_once, claim_many, claim_one, enqueue, new_job, row_counts

DAY = timedelta(days=1)
ORDER = {"key": "order-7", "args": '{"order": 7}'}


def finish(store):
    store.run(calls.complete(claim_one(store), "null"))


def test_the_same_key_and_request_give_the_same_job(store, database):
    first = enqueue(store, **ORDER)

    second = enqueue(store, **ORDER)

    assert second == first
    assert row_counts(database)["active"] == 1


def test_the_order_of_fields_and_spaces_do_not_make_another_request(store):
    first = enqueue(store, key="k", args='{"a": 1, "b": 2}')

    second = enqueue(store, key="k", args='{"b":2,"a":1}')

    assert second == first


@pytest.mark.parametrize("other", [{"args": '{"order": 8}'}, {"task": "another_task"}])
def test_another_request_under_the_same_key_is_refused(store, database, other):
    first = enqueue(store, **ORDER)
    before = row_counts(database)

    with pytest.raises(KeyConflict, match=f"already names job {first}"):
        enqueue(store, **{**ORDER, **other})

    assert row_counts(database) == before


def test_a_key_belongs_to_its_queue(store):
    here = enqueue(store, **ORDER)

    there = enqueue(store, queue="elsewhere", **{**ORDER, "args": "{}"})

    assert there != here


def test_a_key_gives_the_same_job_while_it_runs(store):
    job_id = enqueue(store, **ORDER)
    claim_one(store)

    assert enqueue(store, **ORDER) == job_id


def test_a_key_gives_the_same_job_while_it_waits_for_its_retry(store):
    job_id = enqueue(store, **ORDER)
    store.run(calls.fail(claim_one(store), "boom", timedelta(hours=1)))

    assert enqueue(store, **ORDER) == job_id


def test_a_key_gives_the_same_job_after_it_finished(store, database):
    job_id = enqueue(store, **ORDER)
    finish(store)

    assert enqueue(store, **ORDER) == job_id
    assert row_counts(database)["active"] == 0


def test_a_key_still_refuses_another_request_after_its_job_finished(store):
    enqueue(store, **ORDER)
    finish(store)

    with pytest.raises(KeyConflict):
        enqueue(store, key="order-7", args="[]")


def test_a_key_outlives_the_ledger_of_its_job(store, clock, db):
    """A unique column on the job would die with its row, and the same key would run again."""
    job_id = enqueue(store, **ORDER, key_for=timedelta(days=30))
    finish(store)
    db.execute("select setval('faultline.places', 1000001)")
    clock.advance(days=8)
    store.run(calls.drop_partitions())
    store.run(calls.prune())

    assert store.run(calls.get(job_id)) is None
    assert enqueue(store, **ORDER) == job_id


def test_after_its_window_a_key_makes_a_new_job(store, clock):
    first = enqueue(store, **ORDER, key_for=DAY)
    finish(store)
    clock.advance(DAY + timedelta(minutes=1))

    second = enqueue(store, **ORDER, key_for=DAY)

    assert second != first
    assert enqueue(store, **ORDER) == second


def test_after_its_window_a_key_is_free_for_another_request(store, clock):
    first = enqueue(store, **ORDER)
    finish(store)
    clock.advance(DAY + timedelta(minutes=1))

    assert enqueue(store, key="order-7", args="[]") != first


def test_the_window_runs_from_settling_not_from_enqueueing(store, clock):
    job_id = enqueue(store, **ORDER, key_for=DAY)
    clock.advance(days=3)
    finish(store)
    clock.advance(hours=23)

    assert enqueue(store, **ORDER) == job_id


def test_a_key_never_lapses_while_its_job_lives(store, clock):
    job_id = enqueue(store, **ORDER, key_for=timedelta(minutes=1))
    clock.advance(days=400)

    assert enqueue(store, **ORDER) == job_id
    store.run(calls.prune())
    assert enqueue(store, **ORDER) == job_id


def test_a_window_of_nothing_frees_the_key_when_the_job_settles(store, clock):
    first = enqueue(store, **ORDER, key_for=NOW)
    living = enqueue(store, **ORDER, key_for=NOW)
    finish(store)
    clock.advance(seconds=1)

    assert living == first
    assert enqueue(store, **ORDER) != first


@pytest.mark.parametrize("end", ["cancelled", "dropped", "dead", "out of attempts", "many"])
def test_every_end_of_a_job_starts_its_keys_window(store, clock, end):
    first = enqueue(store, **ORDER, max_attempts=1)
    ending = {
        "cancelled": lambda: calls.cancel(first),
        "dropped": lambda: calls.cancel_claimed(claim_one(store)),
        "dead": lambda: calls.bury(claim_one(store), "no use"),
        "out of attempts": lambda: calls.fail(claim_one(store), "boom", NOW),
        "many": lambda: calls.complete_many([claim_one(store)], ["null"]),
    }
    store.run(ending[end]())

    within = enqueue(store, **ORDER)
    clock.advance(DAY + timedelta(minutes=1))
    after = enqueue(store, **ORDER)

    assert within == first
    assert after != first


def test_a_crash_past_the_last_attempt_starts_the_keys_window(store, clock):
    first = enqueue(store, **ORDER, max_attempts=1)
    claim_one(store)
    clock.advance(minutes=1)
    store.run(calls.reap())

    within = enqueue(store, **ORDER)
    clock.advance(DAY + timedelta(minutes=1))

    assert within == first
    assert enqueue(store, **ORDER) != first


def test_200_enqueues_of_one_key_at_once_make_one_job(store, database):
    ids = all_at_once(200, lambda _: enqueue(store, **ORDER))

    assert len(set(ids)) == 1
    assert row_counts(database)["active"] == 1


def test_200_enqueues_half_with_another_request_give_one_job_and_conflicts_only(store, database):
    def ask(n):
        try:
            return enqueue(store, key="order-7", args=f'{{"order": {n % 2}}}')
        except KeyConflict:
            return "conflict"

    answers = all_at_once(200, ask)

    ids = {answer for answer in answers if answer != "conflict"}
    assert len(ids) == 1
    assert answers.count("conflict") == 100
    assert row_counts(database)["active"] == 1


def test_many_with_keys_make_each_key_once(store, database):
    batch = [new_job(key=f"k{n % 3}", args=f'{{"n": {n % 3}}}') for n in range(9)]

    ids = store.run(calls.enqueue_many(batch))

    assert ids[:3] == ids[3:6] == ids[6:]
    assert len(set(ids)) == row_counts(database)["active"] == 3


def test_many_may_mix_jobs_with_a_key_and_without(store, database):
    ids = store.run(calls.enqueue_many([new_job(key="k"), new_job(), new_job(key="k"), new_job()]))

    assert ids[0] == ids[2]
    assert len(set(ids)) == row_counts(database)["active"] == 3


def test_a_conflict_in_many_refuses_them_all(store, database):
    enqueue(store, key="b", args='{"taken": true}')
    before = row_counts(database)

    with pytest.raises(KeyConflict):
        store.run(calls.enqueue_many([new_job(key=key) for key in "abc"]))

    assert row_counts(database) == before


def test_batches_of_the_same_keys_in_other_orders_do_not_deadlock(store, database):
    def ask(n):
        keys = [f"k{i}" for i in range(20)]
        return store.run(calls.enqueue_many([new_job(key=key) for key in (keys if n % 2 else keys[::-1])]))

    all_at_once(8, ask)

    assert row_counts(database)["active"] == 20


def test_keyed_jobs_for_later_wait_as_others_do(store, clock):
    ids = store.run(calls.enqueue_many([new_job(key=key, delay=timedelta(hours=1)) for key in "ab"]))
    early = claim_many(store)
    clock.advance(hours=1)
    store.run(calls.promote())

    assert early == []
    assert [lease.job_id for lease in claim_many(store)] == ids


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there", "line\nfeed"])
def test_a_key_outside_the_rules_is_refused(store, database, key):
    before = row_counts(database)

    with pytest.raises(BadName):
        enqueue(store, key=key)

    assert row_counts(database)["keys"] == before["keys"]


def test_a_key_of_255_characters_of_any_script_is_taken(store):
    key = "🗝" * 255

    assert enqueue(store, key=key) == enqueue(store, key=key)


@pytest.mark.parametrize("key_for", [timedelta(days=-1), timedelta(days=3601)])
def test_a_window_outside_its_bounds_is_refused(store, key_for):
    with pytest.raises(OutOfBounds):
        enqueue(store, key="k", key_for=key_for)
