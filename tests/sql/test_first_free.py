"""Where the first and the last free job of each lane stand: what a watchdog announces."""

from datetime import timedelta

from faultline.store import calls
from tests.support import claim_one, enqueue


def queues(store):
    return [queue for queue, _ in store.run(calls.first_free())]


def test_each_lane_with_a_free_job_is_named_with_its_first_and_last_place(store, db):
    for _ in range(3):
        enqueue(store, queue="mail")
    enqueue(store, queue="billing")
    enqueue(store, queue="billing", priority=1)
    enqueue(store, queue="later", delay=timedelta(hours=1))

    found = store.run(calls.first_free())

    assert sorted(queue for queue, _ in found) == ["billing", "billing", "mail", "mail"]
    places = db.execute("select min(pos), max(pos) from faultline.active group by lane").fetchall()
    assert {pos for _, pos in found} == {pos for ends in places for pos in ends}


def test_what_runs_or_may_not_run_is_not_named(store):
    enqueue(store, queue="default")
    claim_one(store)
    enqueue(store, queue="held")
    store.run(calls.pause("held"))

    assert queues(store) == []

    store.run(calls.resume("held"))
    assert queues(store) == ["held"]
