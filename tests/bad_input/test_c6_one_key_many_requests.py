"""C6: 200 enqueues of one key, half of them asking for something else: one job, and named conflicts."""

from collections import Counter
from functools import partial

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from tests.promises.sessions import told_at_once
from tests.support import contents, enqueue, new_job

ASKED = 200


def test_c6_two_hundred_at_once_make_one_job(store, db):
    requests = [new_job(key="order-7", args=f'{{"order": {number % 2}}}') for number in range(ASKED)]

    told = told_at_once([partial(store.run, calls.enqueue(request)) for request in requests])

    kinds = Counter(type(answer) for answer in told)
    assert kinds == {int: ASKED // 2, errors.KeyConflict: ASKED // 2}
    ((job, kept),) = db.execute("select id, (args->>'order')::int from faultline.jobs").fetchall()
    assert {answer for answer in told if isinstance(answer, int)} == {job}
    winners = {number % 2 for number, answer in enumerate(told) if isinstance(answer, int)}
    assert winners == {kept}


def test_c6_the_conflict_names_the_job_that_has_the_key_and_what_to_do(database, store):
    job = enqueue(store, key="order-7")
    before = contents(database)

    with pytest.raises(errors.KeyConflict) as refusal:
        enqueue(store, key="order-7", args='{"other": 1}')

    said = str(refusal.value)
    assert f"the key 'order-7' in queue default already names job {job}" in said
    assert "use another key" in said
    assert contents(database) == before


def test_c6_by_plain_sql_the_conflict_is_ls002(store, db):
    job = enqueue(store, key="order-7")

    with pytest.raises(psycopg.Error) as refusal:
        db.execute("select faultline.enqueue('another_task', key => 'order-7')")

    assert refusal.value.sqlstate == "LS002"
    assert refusal.value.diag.message_detail == f'{{"job_id" : "{job}"}}'
    assert "use another key" in refusal.value.diag.message_hint


def test_c6_by_the_python_door_the_same_request_is_the_same_job(entries):
    first = entries.by_python(7, key="order-7")

    assert entries.by_python(7, key="order-7") == first
    with pytest.raises(errors.KeyConflict, match="use another key"):
        entries.by_python(8, key="order-7")


def test_c6_batches_of_the_same_keys_in_opposite_order_do_not_deadlock(store):
    keys = [f"order-{number}" for number in range(20)]
    batches = [keys, keys[::-1]] * 5
    made = [partial(store.run, calls.enqueue_many([new_job(key=key) for key in batch])) for batch in batches]

    told = told_at_once(made)

    assert [answer for answer in told if isinstance(answer, Exception)] == []
    assert len({job for answer in told for job in answer}) == 20


def test_c6_one_conflict_refuses_its_whole_batch(database, store):
    enqueue(store, key="order-7")
    before = contents(database)

    with pytest.raises(errors.KeyConflict):
        store.run(
            calls.enqueue_many(
                [new_job(key="order-6"), new_job(key="order-7", args="[1]"), new_job(key="order-8")]
            )
        )

    assert contents(database) == before


def test_c6_the_same_key_in_another_queue_is_another_job(store):
    assert enqueue(store, key="order-7") != enqueue(store, key="order-7", queue="mail")
