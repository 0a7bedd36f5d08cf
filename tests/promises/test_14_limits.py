"""Promise: never more jobs of a limit hold a lease at once than it allows, whatever happens beside it."""

import json
import random
import threading
import time
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from faultline.errors import LeaseLost
from faultline.limit import Limit
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import claim_many, new_job, worker_named

CLAIM = "select from faultline.claim(array['default'], 5, '15 s', gen_random_uuid())"
SHORT = timedelta(milliseconds=500)
FLOW_SECONDS = 1.0

OVERLAPS = """
with named as (
  select job_id, max(args::jsonb ->> 'k') as k from faultline.ledger group by job_id
),
changes as (
  select named.k, entry.claimed_at as at, 1 as change from faultline.ledger as entry join named using (job_id)
  where entry.claimed_at is not null
  union all
  select named.k, entry.settled_at, -1 from faultline.ledger as entry join named using (job_id)
  where entry.claimed_at is not null
)
select max(of_key), max(of_all)
from (
  select sum(change) over (partition by k order by at, change) as of_key,
         sum(change) over (order by at, change) as of_all
  from changes
) as held
"""
"""The most leases at once, of one key and of all: from each entry's claim to its end."""


def tie(store, limit):
    store.run(calls.set_limit("api", limit))
    store.run(calls.limit_task("work", "api", limit.key_path))


@pytest.mark.parametrize("limit", [Limit(total=1), Limit(per_key=1, key="k"), Limit(per_key=2, key="k")])
def test_an_admission_that_is_not_committed_counts(database, store, limit):
    """The second claim waits for the first one's commit, and counts what it admitted."""
    tie(store, limit)
    slots = limit.total or limit.per_key
    store.run(calls.enqueue_many([new_job("work", '{"k": "a"}') for _ in range(8)]))
    with psycopg.connect(database) as conn:
        first = conn.execute(CLAIM).rowcount
        second: list[int] = []
        beside = threading.Thread(target=lambda: second.append(len(claim_many(store))))
        beside.start()
        _until_it_waits_or_ends(conn, beside)
        conn.commit()
        beside.join()

    assert (first, second) == (slots, [0])


def _until_it_waits_or_ends(conn, beside):
    while (
        beside.is_alive()
        and not conn.execute(
            "select count(*) from pg_stat_activity"
            " where wait_event_type = 'Lock' and datname = current_database()"
        ).fetchone()[0]
    ):
        conn.execute("select pg_stat_clear_snapshot(), pg_sleep(0.002)")


@pytest.mark.parametrize("seed", range(2))
def test_a_random_flow_keeps_to_its_limit_and_ends(database, store, db, seed):
    """Workers that complete, fail, release and forget their leases; reaps, sweeps, a limit that changes."""
    chance = random.Random(seed)
    limit = Limit(per_key=chance.choice((1, 3)), total=chance.choice((None, 4)), key="k")
    tie(store, limit)
    worker = worker_named(store, "w")
    jobs = [new_job("work", json.dumps({"k": f"k{n % 4}"}), max_attempts=10_000) for n in range(120)]
    store.run(calls.enqueue_many(jobs))
    stop_faults_at = time.monotonic() + FLOW_SECONDS
    done = threading.Event()
    hands = [
        threading.Thread(target=_work, args=(database, worker, seed + n, stop_faults_at, done))
        for n in range(3)
    ]
    for hand in hands:
        hand.start()
    give_up_at = time.monotonic() + 60
    while db.execute("select count(*) from faultline.active").fetchone() != (0,) or db.execute(
        "select count(*) from faultline.later"
    ).fetchone() != (0,):
        assert time.monotonic() < give_up_at, "jobs are left over"
        db.execute("update faultline.rounds set hold_until = '-infinity', gap = '{}', gap_at = '{}'")
        for chore in (calls.reap(), calls.promote(), calls.sweep_gates(3), calls.raise_limit_floors()):
            store.run(chore)
    done.set()
    for hand in hands:
        hand.join()

    of_key, of_all = db.execute(OVERLAPS).fetchone()
    assert of_key <= limit.per_key
    assert of_all <= (limit.total or 120)
    assert db.execute("select count(*) from faultline.ledger where slot = 0").fetchone() == (120,)


def _work(database, worker, seed, stop_faults_at, done):
    chance = random.Random(seed)
    store = Store(database)
    while not done.is_set():
        held = claim_many(store, chance.choice((1, 3, 9)), lease=SHORT, worker=worker, claim=uuid4())
        faulty = time.monotonic() < stop_faults_at
        for lease in held:
            what = chance.random() if faulty else 1.0
            try:
                if what < 0.05:
                    continue  # forgotten: its lease runs out
                if what < 0.2:
                    store.run(calls.fail(lease, "no", timedelta(milliseconds=chance.choice((0, 20)))))
                elif what < 0.3:
                    store.run(calls.release(lease))
                else:
                    store.run(calls.complete(lease, None))
            except LeaseLost:
                pass
        if not held:
            time.sleep(0.002)
    store.close()
