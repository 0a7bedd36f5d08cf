"""Workers say that they are there; ownership never depends on it."""

from datetime import timedelta

import psycopg
import pytest

from faultline.errors import BadName
from faultline.store import calls
from tests.support import LEASE, all_at_once, claim_one, enqueue, state_of, worker_named


def listed(db):
    return db.execute(
        "select name, stopped_at is not null, running from faultline.worker_list order by id"
    ).fetchall()


def test_a_worker_that_started_is_listed_with_what_it_runs(store, db):
    worker = worker_named(store, "ada")
    enqueue(store)
    claim_one(store, worker=worker)

    assert listed(db) == [("ada", False, 1)]


def test_a_worker_that_stopped_is_still_listed(store, db):
    worker = worker_named(store, "ada")

    store.run(calls.worker_stopped(worker))

    assert listed(db) == [("ada", True, 0)]


def test_two_workers_of_one_name_are_two(store):
    assert worker_named(store, "ada") != worker_named(store, "ada")


def test_a_worker_that_is_heard_of_was_seen(store, clock, db):
    worker = worker_named(store, "ada")
    clock.advance(hours=1)

    store.run(calls.heartbeat([], LEASE, worker))

    seen = db.execute("select seen_at from faultline.worker_list").fetchone()[0]
    assert clock.now() - seen < timedelta(seconds=5)


def test_a_worker_nobody_knows_may_beat_claim_and_stop(store):
    """The table is for people: a worker whose row was pruned goes on."""
    enqueue(store)
    lease = claim_one(store, worker=404)
    store.run(calls.heartbeat([lease], LEASE, 404))
    store.run(calls.worker_stopped(404))

    store.run(calls.complete(lease, "null"))

    assert state_of(store, lease.job_id) == "succeeded"


def test_the_queues_of_a_worker_are_there_when_it_starts(store, db):
    """Else a producer's long transaction that made the lane would hold up every other producer of it."""
    store.run(calls.worker_started("ada", "host", 1, ["mail", "paper"], 10, "0"))

    assert db.execute("select queue from faultline.queue_depth order by queue").fetchall() == [
        ("mail",),
        ("paper",),
    ]


def test_workers_that_start_together_with_their_queues_in_other_orders_do_not_deadlock(store):
    queues = [f"queue-{n}" for n in range(30)]

    def start(n):
        return store.run(calls.worker_started("ada", "host", n, queues if n % 2 else queues[::-1], 10, "0"))

    assert len(set(all_at_once(8, start))) == 8


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_a_workers_name_has_1_to_200_characters(store, name):
    with pytest.raises(BadName):
        worker_named(store, name)


def test_a_wake_up_reaches_who_listens(store, database):
    with psycopg.connect(database, autocommit=True) as listener:
        listener.execute("listen faultline")

        store.run(calls.wake("billing"))
        heard = next(listener.notifies(timeout=60, stop_after=1))

    assert (heard.channel, heard.payload) == ("faultline", "billing")


def test_a_wake_up_arrives_only_when_its_transaction_commits(store, database, db):
    with psycopg.connect(database, autocommit=True) as listener:
        listener.execute("listen faultline")
        with db.transaction(force_rollback=True):
            db.execute("select faultline.wake('never')")
        store.run(calls.wake("billing"))

        heard = [note.payload for note in listener.notifies(timeout=0.2)]

    assert heard == ["billing"]


def test_no_verb_but_wake_notifies(store, database):
    """A NOTIFY inside the enqueuing transaction would make all such commits of the server queue up."""
    with psycopg.connect(database, autocommit=True) as listener:
        listener.execute("listen faultline")
        enqueue(store)
        store.run(calls.fail(claim_one(store), "boom", timedelta(0)))
        store.run(calls.promote())

        assert list(listener.notifies(timeout=0.1)) == []
