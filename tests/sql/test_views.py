"""What people read: every job in one view, every lease in another, the claim in none."""

from datetime import timedelta

import pytest

from faultline.store import calls
from tests.support import NOW, claim_one, enqueue, worker_named


def in_each_state(store):
    """A job in every state, by its name."""
    ids = {}
    for state in ("succeeded", "cancelled", "dead", "retrying", "running"):
        ids[state] = enqueue(store, task=state)
        lease = claim_one(store)
        act = {
            "succeeded": calls.complete(lease, "1"),
            "cancelled": calls.cancel(lease.job_id, "not wanted"),
            "dead": calls.bury(lease, "no use"),
            "retrying": calls.fail(lease, "boom", timedelta(hours=1)),
        }
        if state in act:
            store.run(act[state])
    ids["due"] = enqueue(store, task="due")
    ids["scheduled"] = enqueue(store, task="scheduled", delay=timedelta(hours=1))
    return ids


def test_every_job_is_in_the_view_once_with_its_state(store, db):
    ids = in_each_state(store)

    seen = dict(db.execute("select task, state from faultline.jobs").fetchall())

    assert seen == {
        "succeeded": "succeeded", "cancelled": "cancelled", "dead": "dead", "retrying": "queued",
        "running": "running", "due": "queued", "scheduled": "queued",
    }  # fmt: skip
    assert db.execute("select count(*), count(distinct id) from faultline.jobs").fetchone() == (
        len(ids),
        len(ids),
    )


def test_a_job_is_in_one_table_at_a_time(store, db):
    in_each_state(store)

    twice = db.execute(
        "select id from (select id from faultline.active union all select id from faultline.later"
        " union all select id from faultline.dead"
        " union all select job_id from faultline.ledger where slot = 0) as places"
        " group by id having count(*) > 1"
    ).fetchall()

    assert twice == []


@pytest.mark.parametrize("kind", ["uuid", "uuid[]"])
def test_no_view_shows_a_claim(db, kind):
    """A login that knows a claim may act on its job."""
    shown = db.execute(
        "select class.relname, attribute.attname from pg_attribute as attribute"
        " join pg_class as class on class.oid = attribute.attrelid"
        " where class.relnamespace = 'faultline'::regnamespace and class.relkind in ('v', 'm')"
        " and attribute.attnum > 0 and attribute.atttypid = %s::regtype",
        [kind],
    ).fetchall()

    assert shown == []


def test_no_function_gives_a_claim_back(db):
    given = db.execute(
        "select proname from pg_proc where pronamespace = 'faultline'::regnamespace and prosecdef"
        " and (prorettype = any (array['uuid', 'uuid[]', 'faultline.active', 'faultline.ledger']::regtype[])"
        "  or exists (select from unnest(proallargtypes, proargmodes) as arg (type, mode)"
        "    where arg.type = any (array['uuid', 'uuid[]']::regtype[]) and arg.mode in ('o', 't', 'b')))"
    ).fetchall()

    assert given == []


def test_a_finished_jobs_claim_is_in_nothing_that_is_shown(store, db):
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.complete(lease, "null"))

    rows = [
        db.execute(f"select * from faultline.{view}").fetchall()
        for view in ("jobs", "entries", "refused_writes")
    ]
    kept = db.execute("select claim from faultline.ledger").fetchone()[0]

    assert kept == lease.claim
    assert str(lease.claim) not in str(rows)


def test_entries_have_worker_time_token_and_outcome(store, clock):
    worker = worker_named(store, "ada")
    job_id = enqueue(store)
    first = claim_one(store, worker=worker)
    store.run(calls.fail(first, "boom", NOW))
    clock.advance(seconds=1)
    store.run(calls.promote())
    second = claim_one(store, worker=worker)
    store.run(calls.complete(second, "null"))

    history = store.run(calls.history(job_id))

    assert [(e.token, e.outcome, e.worker, e.attempt, e.error) for e in history] == [
        (first.token, "failed", "ada", 1, "boom"),
        (second.token, "succeeded", "ada", 2, None),
    ]
    assert all(e.claimed_at <= e.settled_at for e in history)


def test_the_leases_of_a_job_are_read_a_page_at_a_time(store):
    """A worker that takes a job and lets it go makes an entry each time, and no attempt counts."""
    job_id = enqueue(store)
    tokens = []
    for _ in range(5):
        lease = claim_one(store)
        store.run(calls.release(lease))
        tokens.append(lease.token)

    def read(**page):
        return [entry.token for entry in store.run(calls.history(job_id, **page))]

    assert read() == tokens
    assert read(most=2) == tokens[3:]
    assert read(most=2, before=tokens[3]) == tokens[1:3]
    assert read(most=0, before=tokens[1]) == tokens[:1]


def test_jobs_are_listed_newest_first_by_what_fits_a_page_at_a_time(store):
    ids = in_each_state(store)
    newest_first = sorted(ids.values(), reverse=True)

    def listed(**fits):
        return [job.id for job in store.run(calls.list_jobs(**fits))]

    assert listed() == newest_first
    assert listed(most=3) == newest_first[:3]
    assert listed(before=newest_first[2], most=2) == newest_first[3:5]
    assert listed(state="queued") == sorted((ids["retrying"], ids["due"], ids["scheduled"]), reverse=True)
    assert listed(task="dead") == [ids["dead"]]
    assert listed(queue="nowhere") == []


def test_a_job_that_is_not_there_is_none(store):
    assert store.run(calls.get(404)) is None
    assert store.run(calls.history(404)) == []


def test_the_depth_of_a_queue_counts_each_place(store, db):
    in_each_state(store)
    store.run(calls.pause("default"))
    store.run(calls.set_retention("empty", "outline"))

    rows = db.execute(
        "select queue, paused, keep, due, running, scheduled, dead from faultline.queue_depth order by queue"
    ).fetchall()

    assert rows == [("default", True, "full", 1, 1, 2, 1), ("empty", False, "outline", 0, 0, 0, 0)]


def test_the_lag_of_a_queue_is_the_age_of_what_waits_longest(store, clock, db):
    enqueue(store, queue="due")
    enqueue(store, queue="overdue", delay=timedelta(minutes=1))
    enqueue(store, queue="future", delay=timedelta(days=1))
    clock.advance(minutes=3)

    lag = dict(db.execute("select queue, lag_seconds from faultline.queue_lag").fetchall())

    assert lag == {"due": pytest.approx(180, abs=3), "overdue": pytest.approx(120, abs=3), "future": None}


def test_a_list_of_queues_reads_a_few_pages_for_each_of_them(store, db):
    """It read all that waits for later once for each queue: an operator's pause ended at 20,000 queues."""
    many = 4_000
    db.execute(
        "select faultline.enqueue_many(task => 't', args => array['{}'], queue => 'q' || n, delay => '1 day')"
        " from generate_series(1, %s) as n",
        [many],
    )

    (plan,) = db.execute(
        "explain (analyze, buffers, format json) select * from faultline.list_queues()"
    ).fetchone()[0]

    assert plan["Plan"]["Actual Rows"] == many
    assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < 20 * many
    (one,) = store.run(calls.list_queues("q7"))
    assert (one.queue, one.scheduled, one.lag_seconds) == ("q7", 1, None)
    assert store.run(calls.list_queues("q")) == []


def test_the_ledger_lists_its_newest_jobs_first(store):
    in_each_state(store)

    listed = store.run(calls.ledger(most=3))

    assert [entry.outcome for entry in listed] == ["failed", "dead", "cancelled"]
