"""Jobs of any kinds in one call: an answer each, and no wait for another transaction."""

import threading
from datetime import timedelta

import psycopg
import pytest

from faultline.errors import BadDocument, BadName, OutOfBounds
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.driver.arrays import ArrayParam
from tests.support import claim_many, enqueue, new_job, row_counts


@pytest.fixture(autouse=True)
def lane(store):
    enqueue(store)


def states(store, *jobs):
    return [row.state for row in store.run(calls.enqueue_each(jobs))]


def test_the_answers_are_in_the_order_of_the_jobs(store, db):
    jobs = [new_job(task=f"t{number % 3}", priority=0, args=f'{{"n":{number}}}') for number in range(50)]

    rows = store.run(calls.enqueue_each(jobs))

    for row, job in zip(rows, jobs, strict=True):
        assert row.state == "made"
        found = db.execute("select task, args from faultline.active where id = %s", [row.id]).fetchone()
        assert found == (job.task, job.args)


def test_jobs_are_claimed_in_the_order_of_the_call(store):
    jobs = [new_job(task=f"t{number}") for number in range(20)]

    ids = [row.id for row in store.run(calls.enqueue_each(jobs))]

    assert ids == sorted(ids)
    assert [lease.job_id for lease in claim_many(store)][1:] == ids


def test_a_job_without_a_lane_is_left_out_and_creates_none(store, database):
    before = row_counts(database)

    assert states(store, new_job(), new_job(queue="new"), new_job(priority=3)) == [
        "made",
        "new_lane",
        "new_lane",
    ]

    assert row_counts(database)["active"] == before["active"] + 1
    assert row_counts(database)["lanes"] == before["lanes"]


def test_a_key_is_answered_for_each_job(store, database):
    taken = enqueue(store, key="k", args='{"a": 1}')

    rows = store.run(
        calls.enqueue_each(
            [
                new_job(key="k", args='{"a":1}'),
                new_job(key="k", args='{"a":2}'),
                new_job(key="new"),
                new_job(key="new"),
                new_job(key="new", task="other"),
                new_job(),
                new_job(queue="new", key="no lane"),
            ]
        )
    )

    assert [row.state for row in rows] == [
        "found",
        "conflict",
        "made",
        "found",
        "conflict",
        "made",
        "new_lane",
    ]
    assert rows[0].id == taken
    assert rows[2].id == rows[3].id
    assert [rows[n].id for n in (1, 4, 6)] == [None] * 3
    assert enqueue(store, key="new") == rows[2].id


def test_a_key_that_lapsed_is_taken(store, db, clock):
    first = enqueue(store, key="k", key_for=timedelta(hours=1))
    db.execute(
        "update faultline.keys set until = faultline.now() - interval '1 s' where job_id = %s", [first]
    )
    db.commit()

    (row,) = store.run(calls.enqueue_each([new_job(key="k", args='{"other":1}')]))

    assert row.state == "made"
    assert row.id != first


def test_a_job_for_later_is_not_due(store, database):
    moment = timedelta(days=1)

    assert states(store, new_job(delay=moment), new_job(delay=timedelta(0))) == ["made", "made"]

    assert (row_counts(database)["later"], row_counts(database)["active"]) == (1, 2)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"args": '{"a": "\\u0000"}'}, BadDocument),
        ({"args": "{"}, BadDocument),
        ({"args": "[" * 65 + "]" * 65}, BadDocument),
        ({"queue": "a b"}, BadName),
        ({"task": ""}, BadName),
        ({"key": "x" * 256}, BadName),
        ({"priority": 101}, OutOfBounds),
        ({"max_attempts": 0}, OutOfBounds),
        ({"lease_for": timedelta(0)}, OutOfBounds),
        ({"timeout": timedelta(0)}, OutOfBounds),
        ({"delay": timedelta(-1)}, OutOfBounds),
        ({"retry": '"' + "x" * 9000 + '"'}, OutOfBounds),
        ({"trace": "x" * 601}, OutOfBounds),
    ],
    ids=str,
)
def test_the_bounds_are_those_of_a_single_job(store, database, wrong, error):
    before = row_counts(database)

    with pytest.raises(error) as many:
        store.run(calls.enqueue_each([new_job(), new_job(**wrong)]))
    with pytest.raises(error) as one:
        store.run(calls.enqueue(new_job(**wrong)))

    assert str(many.value) == str(one.value)
    assert row_counts(database) == before


def test_lists_of_other_lengths_are_refused(store):
    call = calls.enqueue_each([new_job(), new_job()])

    with pytest.raises(OutOfBounds, match="for 2 jobs"):
        store.run(Call(call.name, {**call.args, "kind_of": ArrayParam([1], "bigint")}, call.read))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind_of": ArrayParam([1, 2], "bigint")},
        {"kind_of": ArrayParam([0, 1], "bigint")},
        {"kind_of": None},
        {"kinds": None},
    ],
    ids=["a kind that is not there", "a kind before the first", "no kinds of the jobs", "no kinds"],
)
def test_a_job_without_a_kind_is_not_left_out(store, database, wrong):
    """It has no row in the answer, so those behind it would be taken for the answers of other jobs."""
    before = row_counts(database)
    call = calls.enqueue_each([new_job(), new_job()])

    with pytest.raises(OutOfBounds, match="have a kind"):
        store.run(Call(call.name, {**call.args, **wrong}, call.read))

    assert row_counts(database) == before


def test_a_held_key_is_not_waited_for_long(store, database):
    with psycopg.connect(database) as theirs:
        theirs.execute("select faultline.enqueue('t', key => 'held')")
        opened = threading.Timer(20, theirs.rollback)
        opened.start()

        with pytest.raises(psycopg.errors.LockNotAvailable):
            store.run(calls.enqueue_each([new_job(key="held"), new_job(key="free")]))
        opened.cancel()

    assert enqueue(store, key="free")


def test_the_callers_own_limit_of_waiting_is_there_again(store, database):
    with psycopg.connect(database) as conn:
        conn.execute("set lock_timeout = '7s'")
        type(store).run_in(conn, calls.enqueue_each([new_job(key="k")]))

        assert conn.execute("show lock_timeout").fetchone() == ("7s",)


def test_two_calls_of_the_same_keys_do_not_deadlock(store):
    keys = [f"k{number}" for number in range(100)]
    failed = []

    def send(names):
        try:
            for _ in range(5):
                store.run(calls.enqueue_each([new_job(key=key) for key in names]))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=send, args=[names]) for names in (keys, keys[::-1]) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert not failed
