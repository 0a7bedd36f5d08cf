"""(nothing) -> queued: enqueue and enqueue_many."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from faultline.errors import BadDocument, OutOfBounds
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.driver.arrays import ArrayParam
from faultline.store.pool import Store
from tests.support import all_at_once, claim_many, claim_one, enqueue, new_job, row_counts, state_of


def test_an_enqueued_job_is_queued_and_due(store):
    job_id = enqueue(store, task="greet", args='{"name": "Ada"}')

    job = store.run(calls.get(job_id))

    assert (job.state, job.task, job.queue, job.args) == ("queued", "greet", "default", {"name": "Ada"})
    assert claim_one(store).job_id == job_id


def test_ids_only_grow(store):
    ids = [enqueue(store) for _ in range(5)]

    assert ids == sorted(set(ids))


def test_a_job_keeps_everything_it_was_asked_with(store):
    enqueue(
        store, task="charge", args='{"order": 7}', queue="billing", max_attempts=3,
        lease_for=timedelta(seconds=30), timeout=timedelta(minutes=2), retry='{"first": 1}', key="order-7",
    )  # fmt: skip

    (row,) = store.run(calls.claim(["billing"], 1, lease=timedelta(seconds=15), claim=uuid4()))

    assert (row.task, row.queue, row.args, row.key) == ("charge", "billing", '{"order": 7}', "order-7")
    assert (row.attempt, row.max_attempts, row.crashes) == (1, 3, 0)
    assert (row.lease_for, row.timeout) == (timedelta(seconds=30), timedelta(minutes=2))
    assert row.retry == '{"first": 1}'


def test_a_job_for_later_is_queued_but_not_claimed_before_its_moment(store, clock):
    job_id = enqueue(store, delay=timedelta(minutes=5))

    assert claim_many(store) == []
    assert state_of(store, job_id) == "queued"

    clock.advance(minutes=5)
    store.run(calls.promote())

    assert claim_one(store).job_id == job_id


def test_run_at_says_the_moment_itself(store, clock):
    moment = datetime.now(UTC) + timedelta(hours=1)

    job_id = enqueue(store, run_at=moment)

    assert store.run(calls.get(job_id)).run_at == moment


@pytest.mark.parametrize("options", [{"delay": timedelta(0)}, {"run_at": datetime(2000, 1, 1, tzinfo=UTC)}])
def test_a_moment_that_has_passed_means_now(store, options):
    job_id = enqueue(store, **options)

    assert claim_one(store).job_id == job_id


def test_a_job_enqueued_in_a_transaction_exists_when_it_commits(store, database):
    with psycopg.connect(database) as conn:
        job_id = Store.run_in(conn, calls.enqueue(new_job()))
        unseen = state_of(store, job_id)
        conn.commit()

    assert unseen is None
    assert state_of(store, job_id) == "queued"


def test_a_job_enqueued_in_a_transaction_that_rolls_back_never_was(store, database):
    before = row_counts(database)

    with psycopg.connect(database) as conn:
        Store.run_in(conn, calls.enqueue(new_job()))
        conn.rollback()

    assert row_counts(database) == before


def test_plain_sql_can_enqueue_with_a_task_alone(store, db):
    job_id = db.execute("select faultline.enqueue('send_receipt')").fetchone()[0]

    job = store.run(calls.get(job_id))

    assert (job.task, job.args, job.queue, job.priority, job.max_attempts) == (
        "send_receipt",
        {},
        "default",
        0,
        10,
    )


def test_plain_sql_can_enqueue_with_everything(store, db):
    job_id = db.execute(
        "select faultline.enqueue('send_receipt', '{\"order\": 17}',"
        " queue => 'mail', delay => '5 minutes', key => 'order-17')"
    ).fetchone()[0]

    job = store.run(calls.get(job_id))

    assert (job.queue, job.args, job.key) == ("mail", {"order": 17}, "order-17")


def test_ids_of_many_come_back_in_the_order_of_their_args(store):
    ids = store.run(calls.enqueue_many([new_job(args=f'{{"n": {n}}}') for n in range(50)]))

    assert [store.run(calls.get(job_id)).args["n"] for job_id in ids] == list(range(50))
    assert ids == sorted(ids)


def test_ids_of_many_for_later_come_back_in_the_order_of_their_args(store):
    hour = timedelta(hours=1)

    ids = store.run(calls.enqueue_many([new_job(args=f'{{"n": {n}}}', delay=hour) for n in range(20)]))

    assert [store.run(calls.get(job_id)).args["n"] for job_id in ids] == list(range(20))
    assert claim_many(store) == []


def test_many_with_nothing_in_them_enqueue_nothing(store, database):
    before = row_counts(database)

    made = store.run(Call("enqueue_many", {"task": "t", "args": ArrayParam([], "text")}, read=len))

    assert made == 0
    assert row_counts(database)["active"] == before["active"]


def test_one_bad_document_in_many_refuses_them_all(store, database):
    enqueue(store)
    before = row_counts(database)

    with pytest.raises(BadDocument):
        store.run(calls.enqueue_many([new_job(), new_job(args="{not json"), new_job()]))

    assert row_counts(database) == before


def test_as_many_keys_as_jobs_or_none(store, database):
    asked = {"task": "t", "args": ArrayParam(["{}", "{}"], "text"), "keys": ArrayParam(["only one"], "text")}

    with pytest.raises(OutOfBounds, match="got 1 keys for 2 jobs"):
        store.run(Call("enqueue_many", asked, read=len))

    assert row_counts(database)["active"] == 0


def test_many_threads_make_a_new_queue_together(store):
    """The first enqueue makes the lane; the others find it in a second statement."""
    ids = all_at_once(16, lambda n: enqueue(store, queue="brand-new", priority=n % 2))

    assert len(set(ids)) == 16
    assert len(claim_many(store, queues=("brand-new",))) == 16
