"""Jobs that cannot be run here: they harm no other job, and no worker spins on them."""

from datetime import timedelta

import psycopg
import pytest

from faultline.store import calls
from faultline.watchdog import unknown_tasks
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import drain, eventually, execute, quick, rows, working


async def double(number: int) -> int:
    return number * 2


def test_rule_10_args_that_do_not_fit_harm_only_their_own_job(database, store):
    wrong = enqueue(store, task="double", args='{"number": "seven"}')
    missing = enqueue(store, task="double", args="{}")
    unknown = enqueue(store, task="double", args='{"number": 1, "nmber": 2}')
    right = enqueue(store, task="double", args='{"number": 7}')

    drain(database, double)

    assert [outcomes(store, job) for job in (wrong, missing, unknown)] == [["failed"]] * 3
    assert "number" in store.run(calls.get(wrong)).error
    assert store.run(calls.get(right)).result == 14


def test_rule_10_a_row_changed_by_hand_harms_only_itself(database, store):
    ids = store.run(calls.enqueue_many([new_job(task="double", args='{"number": 1}')] * 5))
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("update faultline.active set args = '[1, [2, [3]]]' where id = %s", [ids[1]])
        conn.execute("update faultline.active set args = '\"text\"' where id = %s", [ids[3]])

    drain(database, double)

    assert [state_of(store, job) for job in ids] == [
        "succeeded",
        "queued",
        "succeeded",
        "queued",
        "succeeded",
    ]
    assert outcomes(store, ids[1]) == outcomes(store, ids[3]) == ["failed"]


def test_m2_a_task_unknown_here_is_left_for_a_worker_that_knows_it(database, store):
    job = enqueue(store, task="double", args='{"number": 7}')

    drain(database)

    assert state_of(store, job) == "queued"
    assert outcomes(store, job) == []

    drain(database, double)

    assert store.run(calls.get(job)).result == 14


def test_m2_no_worker_spins_on_an_unknown_task(database, store):
    job = enqueue(store, task="nobody_knows")
    known = enqueue(store, task="double", args='{"number": 7}')

    with working(database, double):
        eventually(lambda: state_of(store, known) == "succeeded")
        more = [enqueue(store, task="double", args='{"number": 7}') for _ in range(20)]
        eventually(lambda: {state_of(store, job) for job in more} == {"succeeded"})

    assert outcomes(store, job) == []
    assert state_of(store, job) == "queued"


def test_m2_a_task_that_no_worker_knew_for_a_day_is_dead(database, store, clock, monkeypatch):
    monkeypatch.setattr(unknown_tasks, "LOOK_EVERY", 0.05)
    job = enqueue(store, task="nobody_knows")
    with working(database, double):
        eventually(lambda: rows(database, "select 1 from faultline.active where unknown_since is not null"))
        clock.advance(hours=23)
        assert state_of(store, job) == "queued"
        clock.advance(hours=2)
        eventually(lambda: state_of(store, job) == "dead")

    assert outcomes(store, job) == ["dead"]
    assert "nobody_knows" in store.run(calls.get(job)).error


def test_m2_a_job_that_waited_for_days_before_it_fell_due_is_not_dead_at_first_sight(database, store, clock):
    job = enqueue(store, task="nobody_knows", delay=timedelta(days=3))
    clock.advance(days=3, seconds=1)
    store.run(calls.promote())

    drain(database)

    assert state_of(store, job) == "queued"


@pytest.mark.parametrize("queues", [{"default": None}, {"default": 2}])
def test_a_token_that_is_none_of_ours_stops_no_worker(database, store, queues):
    """D18: the row is set aside by the watchdog, its neighbours run."""
    damaged, sound = (
        enqueue(store, task="double", args='{"number": 1}'),
        enqueue(store, task="double", args='{"number": 1}'),
    )
    execute(database, "update faultline.active set token = 4611686018427387903 where id = %s", damaged)

    with working(database, double, config=quick(queues=queues)):
        eventually(lambda: state_of(store, sound) == "succeeded")
        eventually(lambda: state_of(store, damaged) == "dead")
