"""Limits beside schedules, rules of keys, expiry and full queues: each job of a limit is counted."""

import json
import threading
import time
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from faultline.limit import Limit
from faultline.store import calls
from tests.sql.test_limits import ids_of, put, tie
from tests.sql.test_schedules import history, set_schedule, shown, tick
from tests.support import claim_many, new_job, state_of

HOUR = timedelta(hours=1)
CLAIM = "select * from faultline.claim('{default}', 50, '1 minute', gen_random_uuid())"


def in_thread(database, sql, said):
    def run():
        with psycopg.connect(database) as conn:
            try:
                said.append(conn.execute(sql).fetchall())
            except psycopg.Error as error:
                said.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_for_locks(db, count):
    for _ in range(500):
        (waiting,) = db.execute(
            "select count(*) from pg_stat_activity"
            " where datname = current_database() and wait_event_type = 'Lock'"
        ).fetchone()
        if waiting >= count:
            return
        time.sleep(0.01)
    raise AssertionError("nothing waits")


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


def test_a_claim_that_waited_for_a_new_parent_keeps_to_its_total(database, store, db):
    """It reads who the parent is before the lock of the limit, and its bounds never."""
    store.run(calls.set_limit("billing", Limit(total=1)))
    tie(store, Limit(total=50), name="api")
    put(store, *"abcde")

    with psycopg.connect(database) as other:
        other.execute("select faultline.set_limit('api', total => 50, parent => 'billing')")
        said: list[Any] = []
        thread = in_thread(database, CLAIM, said)
        wait_for_locks(db, 1)
        other.commit()
        thread.join()

    assert len(said[0]) <= 1


def test_a_new_parent_and_a_claim_do_not_deadlock(database, store, db):
    tie(store, Limit(total=50), task="t1", name="api")
    tie(store, Limit(total=50), task="t2", name="billing")
    store.run(calls.enqueue(new_job("t1")))
    store.run(calls.enqueue(new_job("t2")))
    said: list[Any] = []
    told: list[Any] = []
    with psycopg.connect(database) as other:
        other.execute("select from faultline.limits where name = 'billing' for update")
        setter = in_thread(
            database, "select faultline.set_limit('api', total => 50, parent => 'billing')", told
        )
        wait_for_locks(db, 1)
        claimer = in_thread(database, CLAIM, said)
        wait_for_locks(db, 2)
        other.rollback()
        setter.join()
        claimer.join()

    assert not isinstance(told[0], psycopg.Error), told
    assert not isinstance(said[0], psycopg.Error), said


def test_a_job_is_not_replaced_by_one_with_another_limit_key(store):
    """Its args are those of b then, and its slot that of a: with per_key=1 two jobs of b run at once."""
    store.run(calls.set_limit("api", Limit(per_key=1, key="any")))
    first = replacing_named(store, "a")
    second = replacing_named(store, "b")
    assert second != first


def test_an_expired_job_takes_no_token(store, clock):
    tie(store, Limit(rate=1 / 3600, burst=1))
    store.run(calls.enqueue(new_job(expires_in=timedelta(seconds=10))))
    live = store.run(calls.enqueue(new_job()))
    clock.advance(seconds=20)

    assert ids_of(claim_many(store)) == [live]


def test_a_full_queue_refuses_limited_jobs_too(store, db):
    tie(store, Limit(total=1))
    db.execute("select faultline.configure_queue('default', max_depth => 5)")
    put(store, *"aaaaaaaaaa")
    store.run(calls.mark_full())
    with pytest.raises(Exception, match="full"):
        put(store, "a")


def test_a_token_is_given_beside_a_free_job_that_no_worker_takes(store, db, clock):
    """The sweep passes a lane in which a job is free, but not for one of a task that no worker knows."""
    tie(store, Limit(rate=1, burst=1), task="mine")
    worker = store.run(calls.worker_started("w", "host", 1, ["default"], 10, "0"))
    db.execute("select faultline.know_tasks(%s, '{mine}')", [worker])
    for task in "mine", "mine", "nobodys":
        store.run(calls.enqueue(new_job(task)))
    assert len(claim_many(store, worker=worker)) == 1
    clock.advance(seconds=5)
    db.execute("update faultline.workers set seen_at = %s", [clock.now()])

    assert db.execute("select queue, admitted from faultline.sweep_gates()").fetchall() == [("default", 1)]


def test_a_parent_that_is_raised_wakes_the_queues_of_its_children(database, store, db):
    """Only lanes of the limit itself are woken, and the jobs of a parent stand in those of its children."""
    store.run(calls.set_limit("billing", Limit(total=1)))
    store.run(calls.set_limit("api", Limit(total=5, parent="billing")))
    store.run(calls.limit_task("test_task", "api", None))
    put(store, "a", "b")
    claim_many(store)
    with psycopg.connect(database, autocommit=True) as ear:
        ear.execute("listen faultline")
        db.execute("select faultline.set_limit('billing', total => 2)")
        told = list(ear.notifies(timeout=1))
    assert told


def test_a_job_whose_limit_key_was_named_keeps_it_when_its_task_moves(store, db):
    """move_to_gates takes the key from the args, so two jobs of acme run at once."""
    tie(store, Limit(per_key=1, key="tenant"))
    store.run(calls.enqueue(new_job(limit_key="acme", args='{"tenant": "x"}')))
    store.run(calls.set_limit("api2", Limit(per_key=1, key="tenant")))
    store.run(calls.limit_task("test_task", "api2", ["tenant"]))
    db.execute("select * from faultline.move_to_gates('test_task')")
    store.run(calls.enqueue(new_job(limit_key="acme", args='{"tenant": "y"}')))

    assert len(claim_many(store)) == 1


def test_two_ways_to_write_a_number_are_one_key(store):
    tie(store, Limit(per_key=1, key="tenant"))
    for args in '{"tenant": 1}', '{"tenant": 1.0}':
        store.run(calls.enqueue(new_job(args=args)))

    assert len(claim_many(store)) == 1


def replacing_named(store, key):
    job = new_job(
        "push", args=json.dumps({"for": key}), key="k", key_rule="replace", limit="api", limit_key=key
    )
    return store.run(calls.enqueue_one(job))[0]
