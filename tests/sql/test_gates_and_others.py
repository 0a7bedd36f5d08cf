"""Limits beside schedules, rules of keys, expiry and full queues: each job of a limit is counted."""

import json
from datetime import timedelta
from typing import Any

import pytest

from faultline.limit import Limit
from faultline.store import calls
from tests.sql.test_limits import ids_of, tie
from tests.sql.test_schedules import history, set_schedule, shown, tick
from tests.support import claim_many, new_job, state_of

HOUR = timedelta(hours=1)


@pytest.mark.parametrize("way", ["fired", "triggered", "backfilled"])
def test_jobs_of_schedules_wait_at_the_gate_of_their_task(store, clock, way):
    tie(store, Limit(total=1), task="report")
    set_schedule(store, missed="all")
    match way:
        case "fired":
            clock.advance(minutes=11)
            tick(store)
        case "triggered":
            for _ in range(2):
                store.run(calls.trigger_schedule("tick"))
        case "backfilled":
            moments = [clock.now() - 2 * HOUR, clock.now() - HOUR]
            store.run(calls.backfill("tick", shown(store).revision, moments, preview=False))
    jobs = sorted(noted.job_id for noted in history(store))

    held = claim_many(store)

    assert len(jobs) == 2
    assert ids_of(held) == jobs[:1]
    assert claim_many(store) == []
    store.run(calls.complete(held[0], None))
    assert ids_of(claim_many(store)) == jobs[1:]


def replacing(store, tenant, n, **options):
    args = json.dumps({"tenant": tenant, "n": n})
    return store.run(calls.enqueue_one(new_job(args=args, key="k", key_rule="replace", **options)))[0]


@pytest.mark.parametrize("admitted", [False, True])
def test_a_job_whose_new_args_belong_to_another_gate_is_not_replaced(store, db, admitted):
    """Its slot is one of its old key: with the new key in it, two jobs of that key would run at once."""
    tie(store, Limit(per_key=1, key="tenant"))
    first = replacing(store, "a", 1)
    if admitted:
        db.execute("select faultline.admit('{default}', 10)")

    assert replacing(store, "a", 2) == first
    other = replacing(store, "b", 3)

    assert other != first
    held = {lease.job_id for lease in claim_many(store)}
    assert held == {first, other}
    kept = dict(db.execute("select id, args::jsonb ->> 'n' from faultline.active").fetchall())
    assert kept == {first: "2", other: "3"}


def test_a_job_whose_producer_named_the_key_of_its_limit_is_replaced(store):
    tie(store, Limit(per_key=1, key="tenant"))

    first = replacing(store, "a", 1, limit_key="x")

    assert replacing(store, "b", 2, limit_key="x") == first


def test_a_debounced_job_leaves_its_gate_until_its_moment(store, clock):
    tie(store, Limit(total=1))
    wait: dict[str, Any] = {"key": "k", "key_rule": "debounce", "key_for": 10 * HOUR, "delay": HOUR}
    (job,) = store.run(calls.enqueue_many([new_job(**wait)]))
    clock.advance(HOUR)
    store.run(calls.promote())  # now it waits at its gate

    assert store.run(calls.enqueue_many([new_job(**wait)])) == [job]

    assert claim_many(store) == []
    clock.advance(HOUR)
    store.run(calls.promote())
    assert ids_of(claim_many(store)) == [job]


def test_gathered_jobs_of_a_limit_keep_their_rules_and_expiry(store, clock):
    tie(store, Limit(total=1))
    rule: dict[str, Any] = {"key": "k", "key_rule": "while_queued"}
    first, again, late, plain = store.run(
        calls.enqueue_each(
            [new_job(**rule), new_job(**rule), new_job(expires_in=HOUR), new_job("plain")],
        )
    )

    assert (first.id, first.is_new, again.is_new) == (again.id, True, False)
    assert len(claim_many(store)) == 2  # the plain one, and one of the limit
    clock.advance(2 * HOUR)
    store.run(calls.expire())
    assert state_of(store, late.id) == "cancelled"
    assert plain.is_new


def test_a_full_queue_refuses_gathered_jobs_of_a_limit_singly(store, db):
    tie(store, Limit(total=1))
    store.run(calls.enqueue(new_job("plain")))
    db.execute("update faultline.lanes set is_full = true")

    rows = db.execute(
        "select id, state from faultline.enqueue_each("
        """'[{"task": "test_task", "queue": "default", "max_attempts": 5}]', '{1,1}', '{"{}","{}"}')"""
    ).fetchall()

    assert rows == [(None, "new_lane"), (None, "new_lane")]


def test_a_job_that_comes_under_a_limit_still_expires(store, clock):
    (job,) = store.run(calls.enqueue_many([new_job(expires_in=HOUR)]))

    tie(store, Limit(total=1))
    assert store.run(calls.move_to_gates("test_task"))[0] == 1
    clock.advance(2 * HOUR)

    assert claim_many(store) == []
    store.run(calls.expire())
    assert state_of(store, job) == "cancelled"
