"""A queue that nothing needs any more can go; one that a job or the ledger tells of stays."""

import contextlib
import threading
import time

import psycopg
import pytest

from faultline.errors import OutOfBounds, WrongState
from faultline.store import calls
from faultline.store.pool import Store
from faultline.store.rows import RemovedQueue
from tests.support import LEASE, all_at_once, claim_one, enqueue

PATIENCE = 60.0
IN_A_LANE = """
select count(*) from faultline.active as job join faultline.lanes as lane on lane.id = job.lane
where job.id = %s
"""

WAITS = """
select 1 from pg_locks
where relation = 'faultline.lanes'::regclass and mode = 'AccessExclusiveLock' and not granted
"""


def queues(store):
    return [queue.queue for queue in store.run(calls.list_queues())]


def test_an_empty_queue_goes_and_comes_again_with_its_next_job(store):
    store.run(calls.pause("old"))
    enqueue(store, queue="used")

    assert store.run(calls.remove_queues(["old"])) == [("old", True, None)]

    assert queues(store) == ["used"]
    assert [act.verb for act in store.run(calls.acts())][:1] == ["remove_queue"]
    job = enqueue(store, queue="old")
    assert claim_one(store, queues=("old",)).job_id == job


@pytest.mark.parametrize("state", ["due", "running", "later", "dead", "ended"])
def test_a_queue_with_jobs_or_history_stays(store, state):
    enqueue(store, queue="mail", delay=LEASE if state == "later" else None)
    if state not in ("due", "later"):
        lease = claim_one(store, queues=("mail",))
        if state == "dead":
            store.run(calls.bury(lease, "no more"))
        elif state == "ended":
            store.run(calls.complete(lease, "null"))

    ((name, removed, said),) = store.run(calls.remove_queues(["mail"]))

    assert (name, removed) == ("mail", False)
    assert ("ledger" if state == "ended" else "holds jobs") in said
    assert queues(store) == ["mail"]


def test_a_queue_that_is_not_there_is_told_by_name(store):
    assert store.run(calls.remove_queues(["nosuch"])) == [("nosuch", False, "there is no such queue")]


def test_a_job_whose_transaction_is_open_is_not_lost(store, database):
    """It has read its lane's number: the lane must be there when it commits."""
    enqueue(store, queue="mail")
    store.run(calls.complete(claim_one(store, queues=("mail",)), "null"))
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("truncate faultline.ledger")
    with psycopg.connect(database) as producer:
        producer.execute("select faultline.enqueue('test_task', queue => 'mail')")

        with pytest.raises(WrongState, match="stays open; no queue was removed"):
            store.run(calls.remove_queues(["mail"]))

        producer.commit()
    assert claim_one(store, queues=("mail",))


def test_an_old_job_that_ends_meanwhile_keeps_its_queue(store, database):
    """Its entry is written behind the look at the ledger, under an id that is not new."""
    job = enqueue(store, queue="mail")
    lease = claim_one(store, queues=("mail",))
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("select setval('faultline.places', nextval('faultline.places') + 20000)")
    with psycopg.connect(database) as worker, psycopg.connect(database) as watching:
        Store.run_in(worker, calls.complete(lease, "null"))
        removing = threading.Thread(target=lambda: suppressed(store, "mail"))
        removing.start()
        give_up_at = time.monotonic() + PATIENCE
        while removing.is_alive() and not watching.execute(WAITS).fetchone():
            assert time.monotonic() < give_up_at
        worker.commit()
        removing.join(PATIENCE)

    assert store.run(calls.get(job)).state == "succeeded"
    assert queues(store) == ["mail"]


def suppressed(store, queue):
    with contextlib.suppress(WrongState):  # on a slow machine it did not wait for long enough
        store.run(calls.remove_queues([queue]))


def test_no_job_is_lost_in_a_queue_that_is_removed_and_made_again(store, database):
    over = threading.Event()
    removed: list[RemovedQueue] = []

    def produce():
        with psycopg.connect(database, autocommit=True) as conn:
            while not over.is_set():
                (job,) = conn.execute("select faultline.enqueue('test_task', queue => 'mail')").fetchone()
                assert conn.execute(IN_A_LANE, [job]).fetchone() == (1,)
                conn.execute("delete from faultline.active where id = %s", [job])

    def remove():
        give_up_at = time.monotonic() + PATIENCE
        while len(removed) < 5 and time.monotonic() < give_up_at:
            with contextlib.suppress(WrongState):
                removed.extend(queue for queue in store.run(calls.remove_queues(["mail"])) if queue.removed)
        over.set()

    all_at_once(3, lambda number: (produce, produce, remove)[number]())

    assert len(removed) >= 5


def test_a_call_names_a_thousand_at_most(store):
    """Claims wait while it looks at them."""
    with pytest.raises(OutOfBounds, match="from 1 to 1000 queues"):
        store.run(calls.remove_queues([f"q{n}" for n in range(1001)]))
