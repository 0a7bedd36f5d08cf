"""Figures of the whole database: right, bounded, and never waited for."""

import asyncio
import time
from datetime import timedelta

import pytest

from faultline.errors import LeaseLost
from faultline.limit import Limit
from faultline.metrics.database_metrics import DatabaseMetrics, of_rows
from faultline.metrics.names import METRICS
from faultline.metrics.series import Snapshot
from faultline.store import calls
from faultline.store.pool import AsyncStore
from tests.support import NOW, claim_many, claim_one, enqueue, new_job, worker_named


def figures(store):
    return of_rows(store.run(calls.metrics()))


def test_jobs_are_counted_by_queue_and_state(store):
    for _ in range(3):
        enqueue(store, queue="mail")
    enqueue(store, queue="mail", delay=timedelta(hours=1))
    enqueue(store, queue="mail", priority=5)
    claim_one(store, queues=("mail",))
    enqueue(store, max_attempts=1)
    store.run(calls.fail(claim_one(store), "no", NOW))

    jobs = figures(store)["queue_jobs"]

    assert {state: jobs["mail", state] for state in ("due", "running", "scheduled", "dead")} == {
        "due": 3, "running": 1, "scheduled": 1, "dead": 0,
    }  # fmt: skip
    assert jobs["default", "dead"] == 1


def test_lag_is_since_when_the_first_due_job_is_due(store, clock):
    enqueue(store)
    enqueue(store, queue="mail", delay=timedelta(minutes=30))
    clock.advance(minutes=10)

    lag = figures(store)["queue_lag_seconds"]

    assert lag["default",] == pytest.approx(600, abs=60)
    assert lag["mail",] == 0


def test_a_job_that_was_scheduled_is_behind_from_its_moment_and_not_from_its_making(store, clock):
    enqueue(store, delay=timedelta(hours=20))
    clock.advance(hours=20, minutes=1)

    waits = figures(store)["queue_lag_seconds"]["default",]
    store.run(calls.promote())
    promoted = figures(store)["queue_lag_seconds"]["default",]

    assert waits == pytest.approx(60, abs=30)
    assert promoted == pytest.approx(60, abs=30)


def test_a_job_that_is_retried_is_due_from_its_retry(store, clock):
    enqueue(store)
    clock.advance(hours=2)
    store.run(calls.fail(claim_one(store), "no", timedelta(minutes=1)))
    clock.advance(minutes=2)
    store.run(calls.promote())

    assert figures(store)["queue_lag_seconds"]["default",] == pytest.approx(60, abs=30)


def test_a_paused_queue_is_not_behind(store, clock):
    enqueue(store)
    store.run(calls.pause("default"))
    clock.advance(minutes=10)

    told = figures(store)

    assert told["queue_lag_seconds"]["default",] == 0
    assert told["queue_paused"]["default",] == 1


def test_refusals_workers_and_claims_are_told(store):
    enqueue(store)
    worker_named(store, "here")
    late = claim_one(store)
    store.run(calls.complete(late, None))
    with pytest.raises(LeaseLost):
        store.run(calls.complete(late, None))
    store.run(calls.refused(late))

    told = figures(store)

    assert told["refusals"] == {("settled",): 1, ("token_mismatch",): 0, ("cancelled",): 0, ("gone",): 0}
    assert told["workers"]["alive",] == 1
    assert told["claims"][()] == 1


def test_every_figure_has_a_name_and_its_labels(store):
    store.run(calls.round_(timedelta(seconds=1)))
    enqueue(store)
    store.run(calls.set_limit("api", Limit(total=1)))
    store.run(calls.limit_task("limited", "api"))

    told = store.run(calls.metrics())

    by_database = {name for name, metric in METRICS.items() if metric.by == "database"}
    assert {figure.name for figure in told} == by_database - {"database_up", "database_scrape_seconds"} - {
        "workers"
    }
    assert all(len(figure.labels) == len(METRICS[figure.name].labels) for figure in told)


def test_tables_are_told_and_the_ledger_is_one(store):
    tables = {labels[0] for labels in figures(store)["table_bytes"]}

    assert {"active", "later", "dead", "ledger", "keys", "refusals"} <= tables
    assert not [name for name in tables if name.startswith("ledger_")]


def test_s13_a_hundred_thousand_queues_are_a_hundred_and_other_and_take_no_time(store, db):
    """By the clock here only as far as that a scrape is not a burden; the bound itself is in the SQL."""
    enqueue(store, queue="first")
    db.execute("set session_replication_role = replica")  # a hundred thousand checks of a key take longest
    db.execute(
        "insert into faultline.queues (name) select 'queue-' || n from generate_series(1, 100000) as n"
    )
    db.execute(
        "insert into faultline.lanes (queue, priority)"
        " select 'queue-' || n, 0 from generate_series(1, 100000) as n"
    )
    enqueue(store, queue="queue-50")
    enqueue(store, queue="queue-9000")

    began = time.monotonic()
    told = figures(store)

    assert time.monotonic() - began < 5
    assert len(told["queue_lag_seconds"]) == 101
    assert told["queue_jobs"]["first", "due"] == 1
    assert told["queue_jobs"]["queue-50", "due"] == 1
    assert told["queue_jobs"]["other", "due"] == 1


def test_counting_stops_at_its_limit_and_says_where(store, db):
    db.execute(
        "select faultline.enqueue_many('test_task', array_fill('{}'::text, array[12000]), max_attempts => 1)"
    )

    told = figures(store)

    assert told["queue_jobs"]["default", "due"] == told["queue_jobs_counted_max"][()] == 10_000


def test_a_takeover_tells_how_soon_it_came(store, clock):
    enqueue(store)
    claim_one(store)
    clock.advance(seconds=20)
    store.run(calls.reap())
    clock.advance(seconds=3)
    store.run(calls.promote())
    taken = claim_one(store)

    (seconds,) = store.run(calls.recoveries([(taken.job_id, taken.token)]))

    assert seconds == pytest.approx(3, abs=2)


def test_a_retry_is_no_takeover(store):
    enqueue(store)
    store.run(calls.fail(claim_one(store), "no", NOW))
    store.run(calls.promote())
    retried = claim_one(store)

    assert store.run(calls.recoveries([(retried.job_id, retried.token)])) == []


def test_a_zombie_lives_from_the_takeover_to_its_refusal(store, clock):
    enqueue(store)
    asleep = claim_one(store)
    clock.advance(seconds=20)
    store.run(calls.reap())
    store.run(calls.promote())
    claim_one(store)
    clock.advance(seconds=40)
    store.run(calls.refused(asleep))

    (seconds,) = store.run(calls.zombies([(asleep.job_id, asleep.token)]))

    assert seconds == pytest.approx(40, abs=5)


async def read(dsn: str) -> Snapshot:
    astore = AsyncStore(dsn)
    try:
        return await DatabaseMetrics(astore).read()
    finally:
        await astore.close()


def test_a_database_that_answers_is_up(database):
    assert asyncio.run(read(database))["database_up"] == {(): 1.0}


def test_m4_a_database_that_is_away_is_told_and_not_waited_for(empty_database):
    """Not even its schema is there: one figure says so, and the scrape has its answer."""
    told = asyncio.run(read(empty_database))

    assert told["database_up"] == {(): 0.0}
    assert "queue_jobs" not in told


def test_who_asks_often_is_given_the_same_answer(database):
    async def twice() -> int:
        asked = 0

        class Counted(AsyncStore):
            async def run(self, call, hint=None):
                nonlocal asked
                asked += 1
                return await super().run(call, hint)

        astore = Counted(database)
        figures = DatabaseMetrics(astore)
        await asyncio.gather(*(figures.read() for _ in range(10)))
        await astore.close()
        return asked

    assert asyncio.run(twice()) == 1


def test_jobs_of_limits_are_told_by_their_state(store):
    store.run(calls.set_limit("api", Limit(total=1)))
    store.run(calls.limit_task("test_task", "api"))
    store.run(calls.enqueue_many([new_job() for _ in range(3)]))
    claim_many(store)

    told = figures(store)

    assert told["limit_jobs"] == {("api", "held"): 1, ("api", "waiting"): 2}
    assert told["queue_jobs"]["default", "due"] == 2
    assert told["queue_lag_seconds"]["default",] == 0  # they wait on purpose
