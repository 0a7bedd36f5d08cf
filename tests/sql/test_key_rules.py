"""Rules of keys: which other job counts as the same, and what an enqueue changes of it."""

import threading
from datetime import timedelta

import psycopg
import pytest
from psycopg import IsolationLevel

from faultline.errors import BadName, KeyConflict, OutOfBounds
from faultline.store import calls
from faultline.store.pool import Store
from faultline.unique import KEY_RULES
from tests.support import NOW, all_at_once, claim_many, claim_one, enqueue, new_job, row_counts

HOUR = timedelta(hours=1)
WAIT = timedelta(seconds=30)
LATER = {"delay": WAIT, "key_for": HOUR}


def one(store, **options):
    return store.run(calls.enqueue_one(new_job(**options)))


def many(store, **options):
    ((job_id, is_new),) = store.run(calls.telling_which_are_new(calls.enqueue_many([new_job(**options)])))
    return job_id, is_new


def each(store, **options):
    (row,) = store.run(calls.enqueue_each([new_job(**options)]))
    return row.id, row.is_new


def with_rule(rule, **options):
    chosen = {"key": "k", "key_rule": rule, "key_for": HOUR}
    return {**chosen, **({"delay": WAIT} if rule == "debounce" else {}), **options}


def args_of(db, job_id):
    (args,) = db.execute("select args::text from faultline.jobs where id = %s", [job_id]).fetchone()
    return args.replace(" ", "")


def rival(database, isolation=IsolationLevel.READ_COMMITTED):
    conn = psycopg.connect(database)
    conn.isolation_level = isolation
    return conn


@pytest.mark.parametrize("rule", KEY_RULES)
@pytest.mark.parametrize("form", [one, many, each])
def test_a_job_that_waits_is_found_in_every_form(store, db, form, rule):
    enqueue(store)  # the lane
    first = form(store, **with_rule(rule, args='{"n":1}'))

    second = form(store, **with_rule(rule, args='{"n":2}'))

    assert first[1]
    assert tuple(second) == (first[0], False)
    newest = rule in ("replace", "debounce")
    assert args_of(db, first[0]) == ('{"n":2}' if newest else '{"n":1}')


@pytest.mark.parametrize("rule", ["while_queued", "replace"])
def test_a_running_job_does_not_count_and_keeps_its_args(store, db, rule):
    first = one(store, **with_rule(rule, args='{"n":1}')).id
    lease = claim_one(store)

    second = one(store, **with_rule(rule, args='{"n":2}'))

    assert second.is_new
    assert args_of(db, first) == '{"n":1}'
    store.run(calls.complete(lease, "null"))
    assert one(store, **with_rule(rule)).id == second.id


def test_a_job_that_waits_for_its_retry_is_queued_but_is_not_replaced(store, db):
    first = one(store, **with_rule("while_queued", args='{"n":1}')).id
    store.run(calls.fail(claim_one(store), "boom", HOUR))

    assert one(store, **with_rule("while_queued")).id == first
    second = one(store, **with_rule("replace", args='{"n":2}'))

    assert second.is_new
    assert args_of(db, first) == '{"n":1}'


def test_while_unfinished_the_running_and_the_retrying_job_count(store, clock):
    ask = with_rule("while_unfinished", args='{"n":1}')
    first = one(store, **ask).id
    lease = claim_one(store)
    running = one(store, **{**ask, "args": '{"n":2}'})
    store.run(calls.fail(lease, "boom", NOW))
    retrying = one(store, **ask)
    store.run(calls.promote())
    store.run(calls.complete(claim_one(store), "null"))
    clock.advance(seconds=1)

    assert (running, retrying) == ((first, False), (first, False))
    assert one(store, **ask).is_new


def test_one_job_a_period_by_the_clock_of_the_database(store, clock):
    clock.advance(HOUR - timedelta(seconds=clock.now().timestamp() % 3600))  # the hour begins
    first = one(store, **with_rule("per_period"))
    store.run(calls.complete(claim_one(store), "null"))
    clock.advance(minutes=59)
    within = one(store, **with_rule("per_period"))
    clock.advance(minutes=1)

    assert within == (first.id, False)
    assert one(store, **with_rule("per_period")).is_new
    assert store.run(calls.get(first.id)).key.startswith("k@3600/")


def test_a_throttle_counts_from_the_end_of_the_last_job(store, clock):
    first = one(store, **with_rule("throttle")).id
    clock.advance(HOUR * 2)
    waiting = one(store, **with_rule("throttle"))
    store.run(calls.complete(claim_one(store), "null"))
    clock.advance(minutes=59)
    ended = one(store, **with_rule("throttle"))
    clock.advance(minutes=2)

    assert (waiting.id, ended.id) == (first, first)
    assert one(store, **with_rule("throttle")).is_new


def test_a_debounced_job_begins_when_it_is_quiet_or_at_the_latest_moment(store, clock):
    begun = clock.now()
    first = one(store, **with_rule("debounce", key_for=WAIT * 3)).id
    moments = []
    for _ in range(5):
        clock.advance(WAIT - timedelta(seconds=5))
        assert one(store, **with_rule("debounce", key_for=WAIT * 3)).id == first
        moments.append((store.run(calls.get(first)).run_at - begun).total_seconds())

    assert [round(moment) for moment in moments] == [55, 80, 90, 90, 90]


def test_a_debounced_job_that_is_due_gets_the_newest_args_and_stays_due(store, clock, db):
    first = one(store, **with_rule("debounce", args='{"n":1}')).id
    clock.advance(WAIT)
    store.run(calls.promote())

    assert one(store, **with_rule("debounce", args='{"n":2}')).id == first
    assert (claim_one(store).job_id, args_of(db, first)) == (first, '{"n":2}')


def test_what_a_producer_has_not_committed_is_not_claimed_past(store, database):
    first = one(store, **with_rule("while_queued")).id
    with rival(database) as conn:
        found = Store.run_in(conn, calls.enqueue_one(new_job(**with_rule("while_queued"))))
        early = claim_many(store)
        conn.commit()

    assert found.id == first
    assert early == []
    assert claim_one(store).job_id == first


@pytest.mark.parametrize("rule", ["while_queued", "replace", "debounce"])
def test_a_rolled_back_enqueue_changes_nothing(store, database, db, rule):
    first = one(store, **with_rule(rule, args='{"n":1}'))
    with rival(database) as conn:
        Store.run_in(conn, calls.enqueue_one(new_job(**with_rule(rule, args='{"n":2}'))))
        conn.rollback()

    assert args_of(db, first.id) == '{"n":1}'
    assert one(store, **with_rule(rule)).id == first.id


def test_an_old_snapshot_is_told_and_misses_no_claim(store, database):
    first = one(store, **with_rule("while_queued")).id
    with rival(database, IsolationLevel.REPEATABLE_READ) as conn:
        conn.execute("select 1")
        assert claim_one(store).job_id == first
        with pytest.raises(psycopg.errors.SerializationFailure):
            Store.run_in(conn, calls.enqueue_one(new_job(**with_rule("while_queued"))))
        conn.rollback()
        assert Store.run_in(conn, calls.enqueue_one(new_job(**with_rule("while_queued")))).is_new


def test_settling_waits_for_no_producer_of_the_key(store, database):
    one(store, **with_rule("while_queued"))
    lease = claim_one(store)
    with rival(database) as conn:
        Store.run_in(conn, calls.enqueue_one(new_job(**with_rule("while_queued"))))
        ended = threading.Event()

        def settle():
            store.run(calls.complete_many([lease], ["null"]))
            ended.set()

        thread = threading.Thread(target=settle)
        thread.start()
        settled = ended.wait(10)
        conn.rollback()
        thread.join()

    assert settled


@pytest.mark.parametrize("rule", KEY_RULES)
def test_100_enqueues_at_once_make_one_job(store, database, rule):
    made = all_at_once(100, lambda n: one(store, **with_rule(rule, args=f'{{"n":{n}}}')))

    assert len({job.id for job in made}) == 1
    assert [job.is_new for job in made].count(True) == 1
    counts = row_counts(database)
    assert counts["active"] + counts["later"] == 1


def test_of_several_in_one_call_one_is_made_and_the_last_replaces(store, db):
    enqueue(store)
    for rule in ("replace", "while_queued"):
        batch = [new_job(key=rule, key_rule=rule, args=f'{{"n":{n}}}') for n in range(3)]
        told = store.run(calls.telling_which_are_new(calls.enqueue_many(batch)))
        assert [is_new for _, is_new in told] == [True, False, False]
        assert len({job_id for job_id, _ in told}) == 1
        assert args_of(db, told[0][0]) == ('{"n":2}' if rule == "replace" else '{"n":0}')

    jobs = [new_job(key="each", key_rule=rule) for rule in ("while_queued", "while_queued", "replace")]
    assert [row.state for row in store.run(calls.enqueue_each(jobs))] == ["made", "found", "conflict"]


@pytest.mark.parametrize("form", [one, many])
@pytest.mark.parametrize("rule", KEY_RULES)
def test_a_key_of_another_task_is_refused(store, form, rule):
    form(store, **with_rule(rule))

    with pytest.raises(KeyConflict):
        form(store, **with_rule(rule, task="another_task"))


def test_prune_keeps_the_key_of_a_job_that_waits_and_drops_it_afterwards(store, clock, database):
    first = one(store, **with_rule("while_queued", delay=timedelta(days=2))).id
    clock.advance(HOUR * 5)
    store.run(calls.prune())
    kept = one(store, **with_rule("while_queued")).id
    clock.advance(days=2)
    store.run(calls.promote())
    store.run(calls.complete(claim_one(store), "null"))
    clock.advance(HOUR * 2)
    store.run(calls.prune())

    assert kept == first
    assert row_counts(database)["keys"] == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"key_rule": "while_queued"}, OutOfBounds),
        ({"key": "k", "key_rule": "sometimes"}, OutOfBounds),
        ({"key": "k", "key_rule": "debounce"}, OutOfBounds),
        ({"key": "k", "key_rule": "per_period", "key_for": timedelta(milliseconds=300)}, OutOfBounds),
        ({"key": "k" * 250, "key_rule": "per_period"}, BadName),
    ],
)
def test_a_rule_that_cannot_be_is_refused(store, database, options, error):
    before = row_counts(database)

    for call in (calls.enqueue, lambda new: calls.enqueue_many([new]), lambda new: calls.enqueue_each([new])):
        enqueue(store, queue="other")
        with pytest.raises(error):
            store.run(call(new_job(queue="other", **options)))

    assert row_counts(database)["keys"] == before["keys"]
