"""queued (at a gate) -> queued (due): limits in total, per key and as a rate."""

import json
from datetime import timedelta

import psycopg
import pytest

from faultline.errors import OutOfBounds
from faultline.limit import Limit
from faultline.store import calls, limit_sync
from tests.support import all_at_once, claim_many, claim_one, new_job, outcomes, state_of, worker_named

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def tie(store, limit, task="test_task", name="api"):
    store.run(calls.set_limit(name, limit))
    store.run(calls.limit_task(task, name, limit.key_path))


def of(*tenants, **options):
    return [new_job(args=json.dumps({"tenant": tenant}), **options) for tenant in tenants]


def put(store, *tenants, **options):
    return store.run(calls.enqueue_many(of(*tenants, **options)))


def ids_of(leases):
    return [lease.job_id for lease in leases]


def test_no_more_jobs_of_a_key_are_leased_than_its_limit(store):
    tie(store, Limit(per_key=2, key="tenant"))
    jobs = put(store, "a", "a", "a", "b")

    held = claim_many(store)

    assert ids_of(held) == [jobs[0], jobs[1], jobs[3]]
    assert claim_many(store) == []
    store.run(calls.complete(held[0], None))
    assert ids_of(claim_many(store)) == [jobs[2]]


def test_an_admitted_job_holds_its_slot_before_it_is_claimed(store):
    tie(store, Limit(total=1))
    plain = store.run(calls.enqueue(new_job("other")))
    put(store, "a", "b")

    assert ids_of(claim_many(store, 1)) == [plain]  # one of the limited jobs was admitted behind it
    assert len(claim_many(store)) == 1
    assert claim_many(store) == []


def test_an_admitted_job_holds_its_slot_of_its_key_before_it_is_claimed(store):
    tie(store, Limit(per_key=2, key="tenant"))
    store.run(calls.enqueue_many([new_job("other") for _ in range(4)]))
    put(store, *"aaaa")

    assert [len(claim_many(store, 1)) for _ in range(4)] == [1] * 4  # each admitted one, while there was room
    assert len(claim_many(store)) == 2


@pytest.mark.parametrize("way", ["enqueue", "enqueue_many", "enqueue_keyed", "enqueue_each", "scheduled"])
def test_every_way_to_enqueue_ends_at_the_gate(store, clock, way):
    tie(store, Limit(total=1, key="tenant"))
    jobs = of("a", "b")

    match way:
        case "enqueue":
            made = [store.run(calls.enqueue(job)) for job in jobs]
        case "enqueue_many":
            made = store.run(calls.enqueue_many(jobs))
        case "enqueue_keyed":
            made = store.run(calls.enqueue_many(of("a", key="k") + of("b", key="l")))
        case "enqueue_each":
            made = [row.id for row in store.run(calls.enqueue_each([*jobs, new_job("plain")]))][:2]
        case "scheduled":
            made = put(store, "a", "b", delay=HOUR)
            assert claim_many(store) == []
            clock.advance(HOUR)
            store.run(calls.promote())

    held = [lease for lease in claim_many(store) if lease.job_id in made]
    assert len(held) == 1
    assert len([lease for lease in claim_many(store) if lease.job_id in made]) == 0


@pytest.mark.parametrize("way", ["fail", "snooze", "release", "reap", "replay", "retry_now", "rescue"])
def test_a_job_that_comes_back_waits_at_its_gate(store, clock, db, way):
    tie(store, Limit(per_key=1, key="tenant"))
    first, second = put(store, "a", "a", max_attempts=1 if way == "replay" else 5)
    lease = claim_one(store)

    match way:
        case "fail" | "replay" | "retry_now":
            store.run(calls.fail(lease, "boom", HOUR if way == "retry_now" else timedelta(0)))
        case "snooze":
            store.run(calls.snooze(lease, SECOND))
            clock.advance(SECOND)
        case "release":
            store.run(calls.release(lease))
        case "reap":
            clock.advance(minutes=1)
            store.run(calls.reap())
        case "rescue":
            db.execute("update faultline.lanes set floor = 1000000")
            store.run(calls.release(lease))
            store.run(calls.rescue())
            db.execute("update faultline.lanes set floor = 0")
    other = claim_one(store) if way in ("fail", "replay", "retry_now", "reap") else None
    if way == "replay":
        store.run(calls.replay(first))
    elif way == "retry_now":
        store.run(calls.retry_now(first))
    store.run(calls.promote())

    if other is not None:
        assert other.job_id == second  # it had yielded
        assert claim_many(store) == []
        store.run(calls.retry_now(first))  # at its gate already: it passes nothing
        assert claim_many(store) == []
        store.run(calls.complete(other, None))
    assert claim_one(store).job_id == first


def test_a_freed_gate_among_many_full_ones_goes_on_at_once(store, db):
    tie(store, Limit(per_key=2, key="tenant"))
    keys = [f"k{n}" for n in range(200)]
    put(store, *keys * 3)
    held = claim_many(store, 400)
    assert len(held) == 400
    assert claim_many(store, 1) == []
    assert db.execute("select isfinite(rest_until) from faultline.limits").fetchone() == (True,)
    db.execute(
        "update faultline.limits set rest_until = faultline.now() + interval '50 s'"
    )  # from full gates
    freed = db.execute("select gate from faultline.active where id = %s", [held[7].job_id]).fetchone()[0]

    store.run(calls.complete(held[7], None))

    assert claim_many(store, 1) == []
    assert len(claim_many(store, 1, freed=[freed])) == 1


def test_a_rest_is_over_when_the_clock_was_set_back(store, clock, db):
    tie(store, Limit(per_key=2, key="tenant"))
    (job,) = put(store, "a")
    db.execute("update faultline.limits set rest_until = faultline.now() + interval '1 second'")
    assert claim_many(store) == []

    clock.advance(hours=-2)

    assert ids_of(claim_many(store)) == [job]


def test_keys_take_turns_for_each_slot_that_is_freed(store):
    """Slots come free one at a time: the key whose jobs are older must not have each of them."""
    tie(store, Limit(total=1, key="tenant"))
    put(store, *["long"] * 60)
    short = put(store, *["short"] * 3)
    order = []
    for _ in range(45):
        lease = claim_one(store)
        order.append(lease.job_id)
        store.run(calls.complete(lease, None))

    assert set(short) <= set(order)


def test_a_limit_in_total_lets_keys_take_turns(store):
    tie(store, Limit(total=4, key="tenant"))
    long = put(store, *["long"] * 50)
    short = put(store, "short", "short")

    assert set(ids_of(claim_many(store))) == {long[0], long[1], *short}


def test_more_jobs_of_few_keys_fill_the_room(store):
    tie(store, Limit(total=9, key="tenant"))
    long = put(store, *["long"] * 50)
    (short,) = put(store, "short")

    assert set(ids_of(claim_many(store))) == {*long[:8], short}


def test_priorities_hold_among_limited_jobs(store):
    tie(store, Limit(total=1, key="tenant"))
    put(store, "a")
    (urgent,) = put(store, "b", priority=-5)

    assert ids_of(claim_many(store)) == [urgent]


def test_a_parent_counts_the_jobs_of_its_children(store):
    store.run(calls.set_limit("queue", Limit(total=3)))
    tie(store, Limit(total=2, parent="queue"), name="one")
    tie(store, Limit(total=2, parent="queue"), task="other", name="two")
    put(store, "a", "a", "a")
    store.run(calls.enqueue_many(of("a", "a", "a", task="other")))

    held = claim_many(store)

    assert len(held) == 3
    assert claim_many(store) == []
    store.run(calls.complete(held[0], None))
    assert len(claim_many(store)) == 1


def test_a_paused_queue_gets_no_slot(store):
    tie(store, Limit(total=1))
    put(store, "a")
    other = put(store, "b", queue="mail")
    store.run(calls.pause("default"))

    assert ids_of(claim_many(store, queues=("default", "mail"))) == other


def test_a_worker_admits_no_job_of_a_task_it_does_not_know(store):
    tie(store, Limit(total=1))
    tie(store, Limit(total=1), task="mine")
    put(store, "a")
    (mine,) = put(store, "b", task="mine")
    worker = worker_named(store, "knows one")
    store.run(calls.know_tasks(worker, ["mine"]))

    assert ids_of(claim_many(store, worker=worker)) == [mine]


def test_a_job_at_its_gate_that_no_worker_knew_for_a_day_is_dead(store, clock):
    tie(store, Limit(total=5))
    (job,) = put(store, "a")
    worker = worker_named(store, "knows another")
    store.run(calls.know_tasks(worker, ["mine"]))

    def look():
        return store.run(calls.heartbeat([], timedelta(seconds=15), worker)) or store.run(
            calls.unknown_tasks()
        )

    assert [unknown.task for unknown in look()] == ["test_task"]
    clock.advance(hours=25)
    assert [unknown.died for unknown in look()] == [1]
    assert state_of(store, job) == "dead"
    assert store.run(calls.sweep_gates()) == []


def test_a_rate_grants_its_burst_and_then_its_rate(store, clock):
    tie(store, Limit(rate="10/s", burst=5))
    put(store, *"aaaaaaaaaaaaaaa")

    assert len(claim_many(store)) == 5
    assert claim_many(store) == []
    assert 0 < store.run(calls.next_due()) <= 0.1
    clock.advance(seconds=0.35)
    assert len(claim_many(store)) == 3
    clock.advance(HOUR)
    assert len(claim_many(store)) == 5


def test_a_bucket_is_full_again_in_its_own_time_after_the_clock_was_set_back(store, clock):
    tie(store, Limit(rate="10/s", burst=5))
    put(store, *["a"] * 20)
    claim_many(store)

    clock.advance(-HOUR)

    assert claim_many(store) == []
    clock.advance(seconds=0.5)
    assert len(claim_many(store)) == 5


def test_a_clock_that_is_read_before_the_lock_is_not_used(store, database, clock):
    """A claim that waited for the lock counts the tokens of the moment at which it has it.

    By an earlier one it would take the bucket for one whose clock was set back, and fill it again.
    """
    tie(store, Limit(rate="1/s", burst=1))
    put(store, "a", "a", "a")
    with psycopg.connect(database) as conn:
        conn.execute("select from faultline.limits for no key update")
        taken = all_at_once(2, lambda number: len(claim_many(store)) if number else _take_later(conn, clock))

    assert taken == [1, 0]
    assert claim_many(store) == []


def _take_later(conn, clock):
    while not conn.execute(
        "select count(*) from pg_stat_activity"
        " where wait_event_type = 'Lock' and datname = current_database()"
    ).fetchone()[0]:
        conn.execute("select pg_stat_clear_snapshot(), pg_sleep(0.002)")
    clock.advance(seconds=5)
    taken = conn.execute(
        "select from faultline.claim(array['default'], 10, '15 s', gen_random_uuid())"
    ).rowcount
    conn.commit()
    return taken


def test_lower_bounds_stop_admissions_and_end_no_lease(store):
    tie(store, Limit(total=3))
    put(store, *"aaaaa")
    held = claim_many(store)

    store.run(calls.set_limit("api", Limit(total=1)))

    assert claim_many(store) == []
    for lease in held[:2]:
        store.run(calls.complete(lease, None))
    assert claim_many(store) == []
    store.run(calls.complete(held[2], None))
    assert len(claim_many(store)) == 1


def test_what_a_worker_declares_again_leaves_a_change_by_hand(store):
    assert store.run(calls.set_limit("api", Limit(total=3), from_code=True))
    store.run(calls.set_limit("api", Limit(total=1)))

    assert not store.run(calls.set_limit("api", Limit(total=3), from_code=True))
    assert store.run(calls.list_limits("api"))[0].total == 1
    assert store.run(calls.set_limit("api", Limit(total=4), from_code=True))
    assert store.run(calls.list_limits("api"))[0].total == 4


def test_a_new_limit_holds_for_jobs_that_were_there(store, clock):
    put(store, "a", "a", "a")
    running = claim_one(store)
    put(store, "a", delay=HOUR)
    store.run(calls.set_limit("api", Limit(per_key=1, key="tenant")))
    assert store.run(calls.limit_task("test_task", "api", ["tenant"]))

    assert limit_sync.carry(limit_sync.move_jobs("test_task"), store.run) == 4

    assert not store.run(calls.limit_task("test_task", "api", ["tenant"]))
    clock.advance(seconds=1)
    assert claim_many(store) == []
    store.run(calls.complete(running, None))
    assert len(claim_many(store)) == 1
    clock.advance(HOUR)
    store.run(calls.promote())
    assert claim_many(store) == []


def test_jobs_of_a_task_that_is_free_again_leave_their_gates(store):
    tie(store, Limit(total=1))
    put(store, "a", "a", "a")

    store.run(calls.limit_task("test_task", None))
    limit_sync.carry(limit_sync.move_jobs("test_task"), store.run)
    store.run(calls.promote())

    assert len(claim_many(store)) == 3


@pytest.mark.parametrize("on_retry", ["yield", "block"])
def test_jobs_of_a_key_run_in_the_order_of_their_ids(store, clock, on_retry):
    tie(store, Limit(per_key=1, key="tenant", on_retry=on_retry))
    jobs = put(store, "a", "a", "a", max_attempts=2)
    order, tokens = [], []

    while leases := claim_many(store):
        (lease,) = leases
        order.append(lease.job_id)
        tokens.append(lease.token)
        if lease.job_id == jobs[0] and order.count(jobs[0]) == 1:
            store.run(calls.fail(lease, "boom", SECOND))
            assert bool(claim_many(store, 1, queues=("none",))) is False
            if on_retry == "block":
                assert claim_many(store) == []
                clock.advance(SECOND)
                store.run(calls.promote())
        else:
            clock.advance(SECOND)
            store.run(calls.promote())
            store.run(calls.complete(lease, None))

    blocked = [jobs[0], jobs[0], jobs[1], jobs[2]]
    yielded = [jobs[0], jobs[1], jobs[0], jobs[2]]
    assert order == (blocked if on_retry == "block" else yielded)
    assert tokens == sorted(set(tokens))  # so a token fences what the jobs of a key share


@pytest.mark.parametrize("on_retry", ["yield", "block"])
def test_a_dead_job_lets_the_next_of_its_key_go(store, on_retry):
    tie(store, Limit(per_key=1, key="tenant", on_retry=on_retry))
    first, second = put(store, "a", "a", max_attempts=1)
    store.run(calls.fail(claim_one(store), "boom", SECOND))

    assert state_of(store, first) == "dead"
    assert claim_one(store).job_id == second


def test_a_first_job_that_another_session_holds_is_not_passed(store, database):
    tie(store, Limit(per_key=1, key="tenant"))
    first, _ = put(store, "a", "a")
    with psycopg.connect(database) as conn:
        conn.execute("select from faultline.later where id = %s for update", [first])
        assert claim_many(store) == []
        conn.rollback()

    assert claim_one(store).job_id == first


def test_a_sweep_admits_what_no_claim_came_for(store, clock):
    tie(store, Limit(total=1))
    put(store, "a", "a")
    worker_named(store, "idle")

    assert store.run(calls.sweep_gates()) == [("default", 1)]
    assert store.run(calls.sweep_gates()) == []
    assert len(claim_many(store)) == 1
    clock.advance(minutes=2)
    store.run(calls.reap())
    assert store.run(calls.sweep_gates()) == []  # no worker was seen for so long


def test_floors_hide_no_held_and_no_waiting_job(store, clock, db):
    tie(store, Limit(per_key=2, key="tenant"))
    first = put(store, "a", "a", "a")
    held = claim_one(store)
    db.execute("select setval('faultline.places', 20000)")
    for _ in range(3):
        store.run(calls.raise_limit_floors())
        clock.advance(seconds=2)
    db.execute("select setval('faultline.places', 40000)")
    store.run(calls.raise_limit_floors())

    late = put(store, "a")
    # As if its transaction had stayed open.
    db.execute("update faultline.later set place = 10000 where id = any (%s)", [late])

    assert len(claim_many(store)) == 1
    assert claim_many(store) == []
    store.run(calls.complete(held, None))
    store.run(calls.raise_limit_floors())
    assert ids_of(claim_many(store)) == [first[2]]


def test_a_job_that_is_committed_late_is_found_behind_the_floor(store, clock, db):
    tie(store, Limit(total=1))
    put(store, "a")
    store.run(calls.complete(claim_one(store), None))
    db.execute("select setval('faultline.places', 20000)")
    for _ in range(2):
        store.run(calls.raise_limit_floors())
        clock.advance(seconds=2)
    late = put(store, "a")
    db.execute("update faultline.later set place = 10 where id = any (%s)", [late])
    assert claim_many(store) == []

    store.run(calls.raise_limit_floors())

    assert ids_of(claim_many(store)) == late


def test_a_job_at_its_gate_keeps_its_place_when_it_is_retried_now(store):
    tie(store, Limit(total=1))
    _, second, third = put(store, "a", "a", "a")
    first = claim_one(store)

    store.run(calls.retry_now(third))

    store.run(calls.complete(first, None))
    assert claim_one(store).job_id == second


def test_a_job_says_what_it_waits_for(store):
    tie(store, Limit(per_key=1, total=5, key="tenant"))
    _, _, third = put(store, "a", "a", "a")
    claim_one(store)

    waits = store.run(calls.waits_for(third))

    assert (waits.limit, waits.per_key, waits.held_of_key, waits.before) == ("api", 1, 1, 1)
    assert state_of(store, third) == "queued"
    (gate,) = store.run(calls.list_gates("api"))
    assert (gate.key, gate.held, gate.waiting) == ("a", 1, 2)
    (limit,) = store.run(calls.list_limits())
    assert (limit.name, limit.held, limit.waiting, limit.tasks) == ("api", 1, 2, ["test_task"])


def test_a_producer_names_a_limit_and_a_key_in_place_of_the_tasks_own(store):
    store.run(calls.set_limit("api", Limit(per_key=1, key="tenant")))
    a, b = (new_job(limit="api", limit_key=key) for key in "ab")
    jobs = [store.run(calls.enqueue(a)) for _ in range(2)]
    jobs += [row.id for row in store.run(calls.enqueue_each([a, b])) if row.id]

    assert ids_of(claim_many(store)) == [jobs[0], jobs[3]]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (new_job(), "have no tenant"),
        (new_job(args='{"tenant": null}'), "have no tenant"),
        (new_job(args='{"tenant": {}}'), "have no tenant"),
        (new_job("other", limit="api"), "counts per key, and this job names none"),
        (new_job(limit="apy"), "there is no limit 'apy'"),
        (new_job("other", limit_key="a"), "has no limit"),
        (new_job(limit_key="k" * 256), "at most 255 characters"),
    ],
)
def test_a_job_without_its_limit_or_key_is_refused_by_name(store, job, said):
    tie(store, Limit(per_key=1, key="tenant"))

    with pytest.raises(OutOfBounds, match=said):
        store.run(calls.enqueue(job))
    if job.limit_key is None or job.task == "test_task":
        assert [row.state for row in store.run(calls.enqueue_each([job]))] == ["new_lane"]


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ("per_key => 0", "per_key is 0"),
        ("total => -1", "total is -1"),
        ("total => 1000001", "total is 1000001"),
        ("rate => 0", "rate is 0 a second"),
        ("rate => 1e9", "rate is 1000000000 a second"),
        ("rate => 'NaN'", "rate is NaN a second"),
        ("rate => 1, burst => 0", "burst is 0"),
        ("burst => 1", "burst is given without a rate"),
        ("per_key => 2, on_retry => 'block'", "for per_key 1 only"),
        ("per_key => 1, on_retry => 'wait'", "on_retry is 'wait'"),
        ("parent => 'api'", "its own parent"),
        ("parent => 'none'", "there is no limit 'none'"),
        ("parent => 'child'", "has a parent itself"),
    ],
)
def test_bad_bounds_are_refused_by_name(store, db, bounds, said):
    store.run(calls.set_limit("top", Limit(total=1)))
    store.run(calls.set_limit("child", Limit(total=1, parent="top")))

    with pytest.raises(psycopg.Error, match=said) as refused:
        db.execute(f"select faultline.set_limit('api', {bounds})")

    assert refused.value.sqlstate == "LS005"
    assert [limit.name for limit in store.run(calls.list_limits())] == ["child", "top"]


def test_a_claim_with_an_old_snapshot_is_refused(store, db):
    tie(store, Limit(total=1))
    put(store, "a")

    with pytest.raises(psycopg.Error, match="runs at READ COMMITTED, not at REPEATABLE READ"):
        db.execute(
            "begin isolation level repeatable read;"
            "select faultline.claim(array['default'], 1, '15 s', gen_random_uuid())"
        )


def test_two_claims_at_once_share_one_slot(store):
    tie(store, Limit(total=1))
    put(store, *["a"] * 8)

    held = all_at_once(4, lambda _: claim_many(store, 3))

    assert sum(map(len, held)) == 1


def test_the_ledger_of_a_limited_job_is_as_any_others(store):
    tie(store, Limit(total=1))
    (job,) = put(store, "a")
    store.run(calls.complete(claim_one(store), None))

    assert outcomes(store, job) == ["succeeded"]
