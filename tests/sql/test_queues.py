"""Pause, resume and keep: what is true of a whole queue."""

import threading

import psycopg
import pytest

from faultline.errors import BadName, JobNotFound
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import claim_many, claim_one, enqueue, new_job, outcomes, row_counts, state_of


def finish(store, result='{"n": 2}', queue="default"):
    job_id = enqueue(store, args='{"n": 1}', queue=queue)
    store.run(calls.complete(claim_one(store, queues=(queue,)), result))
    return job_id


def test_a_paused_queue_gives_no_jobs_and_others_do(store):
    enqueue(store, queue="mail")
    paper = enqueue(store, queue="paper")
    store.run(calls.pause("mail"))

    taken = claim_many(store, queues=("mail", "paper"))

    assert [lease.job_id for lease in taken] == [paper]


def test_what_runs_when_its_queue_is_paused_goes_on(store):
    enqueue(store)
    lease = claim_one(store)

    store.run(calls.pause("default"))

    store.run(calls.complete(lease, "null"))
    assert state_of(store, lease.job_id) == "succeeded"


def test_jobs_can_be_enqueued_while_their_queue_is_paused(store):
    store.run(calls.pause("default"))
    job_id = enqueue(store)

    store.run(calls.resume("default"))

    assert claim_one(store).job_id == job_id


def test_a_pause_holds_for_every_priority_also_for_those_to_come(store):
    enqueue(store, priority=1)
    store.run(calls.pause("default"))
    enqueue(store, priority=2)

    assert claim_many(store) == []

    store.run(calls.resume("default"))

    assert len(claim_many(store)) == 2


def test_a_queue_without_jobs_can_be_paused_beforehand(store):
    store.run(calls.pause("tomorrow"))

    enqueue(store, queue="tomorrow")

    assert claim_many(store, queues=("tomorrow",)) == []


def test_pausing_twice_is_pausing_once(store, db):
    store.run(calls.pause("default"))
    first = db.execute("select paused_at from faultline.queues").fetchone()[0]

    store.run(calls.pause("default"))

    assert db.execute("select paused_at from faultline.queues").fetchone()[0] == first


def test_a_queue_that_is_not_paused_may_be_resumed(store):
    enqueue(store)

    store.run(calls.resume("default"))

    assert len(claim_many(store)) == 1


def test_a_queue_that_is_not_there_cannot_be_resumed(store):
    with pytest.raises(JobNotFound, match="there is no queue 'nowhere'"):
        store.run(calls.resume("nowhere"))


def _keep_full(queue):
    return calls.set_retention(queue, "full")


@pytest.mark.parametrize("name", ["", "'; drop table jobs;--", "x" * 64])
@pytest.mark.parametrize("verb", [calls.pause, calls.resume, _keep_full])
def test_a_queue_that_could_not_exist_is_refused(store, database, verb, name):
    before = row_counts(database)

    with pytest.raises(BadName):
        store.run(verb(name))

    assert row_counts(database) == before


def test_a_lane_made_while_its_queue_is_being_paused_is_paused_too(store, database):
    """The enqueuer that makes a lane and the person who pauses its queue wait for each other."""
    enqueue(store)

    with psycopg.connect(database) as enqueuer:
        Store.run_in(enqueuer, calls.enqueue(new_job(priority=9)))
        pausing = threading.Thread(target=lambda: store.run(calls.pause("default")))
        pausing.start()
        pausing.join(0.2)
        enqueuer.commit()
        pausing.join(60)

    assert claim_many(store) == []


def test_a_lane_made_while_its_queues_keeping_changes_follows_it(store, database, db):
    enqueue(store)

    with psycopg.connect(database) as enqueuer:
        Store.run_in(enqueuer, calls.enqueue(new_job(priority=9)))
        changing = threading.Thread(target=lambda: store.run(calls.set_retention("default", "nothing")))
        changing.start()
        changing.join(0.2)
        enqueuer.commit()
        changing.join(60)

    assert db.execute("select distinct keep::text from faultline.lanes").fetchall() == [("nothing",)]


def test_full_keeps_args_and_result(store):
    job_id = finish(store)

    job = store.run(calls.get(job_id))

    assert (job.args, job.result) == ({"n": 1}, {"n": 2})


@pytest.mark.parametrize("many", [False, True])
def test_outline_keeps_the_entry_without_them(store, many):
    store.run(calls.set_retention("default", "outline"))
    job_id = enqueue(store, args='{"n": 1}')
    lease = claim_one(store)

    store.run(calls.complete_many([lease], ["2"]) if many else calls.complete(lease, "2"))

    job = store.run(calls.get(job_id))
    assert (job.state, job.args, job.result) == ("succeeded", None, None)
    assert outcomes(store, job_id) == ["succeeded"]


@pytest.mark.parametrize("many", [False, True])
def test_nothing_keeps_no_success(store, database, many):
    store.run(calls.set_retention("default", "nothing"))
    enqueue(store)
    lease = claim_one(store)

    store.run(calls.complete_many([lease], ["2"]) if many else calls.complete(lease, "2"))

    counts = row_counts(database)
    assert (counts["active"], counts["ledger"]) == (0, 0)
    assert store.run(calls.outcome(lease)) == "gone"


def test_nothing_still_keeps_every_other_end(store):
    """It drops successes only."""
    store.run(calls.set_retention("default", "nothing"))
    cancelled, dead = enqueue(store), enqueue(store)
    store.run(calls.cancel(cancelled))
    store.run(calls.bury(claim_one(store), "no use"))

    assert outcomes(store, cancelled) == ["cancelled"]
    assert outcomes(store, dead) == ["dead"]


def test_nothing_still_starts_the_window_of_a_key(store, database):
    store.run(calls.set_retention("default", "nothing"))
    job_id = enqueue(store, key="k")
    store.run(calls.complete(claim_one(store), "null"))

    assert enqueue(store, key="k") == job_id
    assert row_counts(database)["active"] == 0


def test_a_queue_that_keeps_nothing_still_fences(store):
    store.run(calls.set_retention("default", "nothing"))
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.complete(lease, "null"))

    (answer,) = store.run(calls.complete_many([lease], ["null"]))

    assert (answer.answer, answer.reason, answer.current_token) == ("refused", "gone", None)


def test_keeping_is_a_matter_of_each_queue(store):
    store.run(calls.set_retention("quiet", "nothing"))

    quiet, other = finish(store, queue="quiet"), finish(store)

    assert state_of(store, quiet) is None
    assert state_of(store, other) == "succeeded"


def test_keeping_can_change_back(store):
    store.run(calls.set_retention("default", "nothing"))
    finish(store)
    store.run(calls.set_retention("default", "full"))

    assert state_of(store, finish(store)) == "succeeded"
