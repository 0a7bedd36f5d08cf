"""Workers say that they are there; ownership never depends on it."""

from datetime import timedelta

import psycopg
import pytest

from faultline.errors import BadName, OutOfBounds
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


def test_an_unknown_worker_may_beat_claim_and_stop(store):
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


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"host": "x" * 201}, "at most 200 characters"),
        ({"version": "x" * 101}, "at most 100"),
        ({"key_name": "x" * 201}, "at most 200 characters"),
        ({"queues": [f"q{n}" for n in range(1001)]}, "at most 1000 queues; this one named 1001"),
    ],
    ids=lambda told: next(iter(told)) if isinstance(told, dict) else "",
)
def test_what_a_worker_tells_of_itself_has_a_bound(store, db, told, said):
    """It is kept as long as the ledger is, and each queue that it names becomes a lane."""
    usual = {"name": "ada", "host": "host", "pid": 1, "queues": ["mail"], "jobs_max": 10, "version": "0"}

    with pytest.raises(OutOfBounds, match=said):
        store.run(calls.worker_started(**{**usual, **told}))

    assert listed(db) == []
    assert db.execute("select count(*) from faultline.lanes").fetchone() == (0,)


def test_a_worker_at_every_bound_starts(store, db):
    queues = [f"q{n}" for n in range(1000)]

    store.run(calls.worker_started("n" * 200, "h" * 200, 1, queues, 10, "v" * 100, "k" * 200))

    assert db.execute("select count(*) from faultline.lanes").fetchone() == (1000,)


def test_a_wake_up_reaches_its_listeners(store, database):
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

        heard = next(listener.notifies(timeout=60, stop_after=1))

    assert heard.payload == "billing"  # the other would have come before it


def test_no_verb_but_wake_notifies(store, database):
    """A NOTIFY inside the enqueuing transaction would make all such commits of the server queue up."""
    with psycopg.connect(database, autocommit=True) as listener:
        listener.execute("listen faultline")
        enqueue(store)
        store.run(calls.fail(claim_one(store), "boom", timedelta(0)))
        store.run(calls.promote())

        assert list(listener.notifies(timeout=0.1)) == []


MANY = """
insert into faultline.workers (name, host, pid, queues, jobs_max, version, started_at, seen_at, key_name)
select 'ada', '', 1, '{}', 1, '', faultline.now(), faultline.now(), 'shop' from generate_series(1, %s)
"""


def started(store, key_name, times=1):
    for _ in range(times):
        number = store.run(calls.worker_started("ada", "here", 1, ["default"], 1, "1", key_name))
    return number


def test_a_key_has_at_most_2000_workers_that_run(store, db, clock):
    """One key registered 4,000 in ten seconds, and hid the others from the list."""
    started(store, "shop")
    db.execute(MANY, [1_999])
    with pytest.raises(OutOfBounds, match="the key shop has 2000 workers that run"):
        started(store, "shop")
    other = started(store, "mail")
    clock.advance(hours=1)

    newest = started(store, "shop")  # the others are silent by now
    assert [one.id for one in store.run(calls.list_workers(most=2))] == [newest, 2001]
    assert other == 2001


def test_a_key_that_starts_workers_over_and_over_keeps_4000_rows(store, db, clock):
    db.execute(MANY, [4_005])
    clock.advance(hours=1)

    newest = started(store, "shop", times=3)
    ids = [row[0] for row in db.execute("select id from faultline.workers order by id").fetchall()]
    assert (len(ids), ids[-1]) == (4000, newest)


def test_silent_and_stopped_workers_are_listed_behind_the_others(store, clock):
    silent_or_alive = started(store, None)
    stopped = started(store, None)
    store.run(calls.worker_stopped(stopped))
    silent = started(store, None)
    clock.advance(hours=1)
    store.run(calls.heartbeat([], LEASE, silent_or_alive))

    listed = [one.id for one in store.run(calls.list_workers(gone=True))]
    assert listed == [silent_or_alive, silent, stopped]
