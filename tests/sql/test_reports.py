"""What people ask about the whole installation: queues, workers, health and the doctor's facts."""

from datetime import timedelta

import psycopg
import pytest

from faultline.store import calls
from tests.support import LEASE, SECOND, claim_one, enqueue, worker_named


def test_queues_are_listed_with_what_stands_where_and_how_far_behind(store, clock):
    enqueue(store, queue="mail")
    enqueue(store, queue="paper", delay=timedelta(hours=1))
    clock.advance(minutes=1)

    mail, paper = store.run(calls.list_queues())

    assert (mail.queue, mail.due, mail.scheduled, mail.paused) == ("mail", 1, 0, False)
    assert mail.lag_seconds == pytest.approx(60, abs=3)
    assert (paper.queue, paper.due, paper.scheduled, paper.lag_seconds) == ("paper", 0, 1, None)


def test_a_worker_that_is_not_heard_of_for_a_lease_is_silent(store, clock):
    worker_named(store, "silent")
    clock.advance(LEASE + SECOND)
    worker_named(store, "here")

    listed = store.run(calls.list_workers())

    assert [(worker.name, worker.silent) for worker in listed] == [("here", False), ("silent", True)]


def test_workers_that_stopped_are_listed_when_asked_for(store):
    store.run(calls.worker_stopped(worker_named(store, "gone")))

    assert store.run(calls.list_workers()) == []
    assert [worker.name for worker in store.run(calls.list_workers(gone=True))] == ["gone"]


def test_workers_are_listed_by_queue_before_the_limit_with_what_they_run_there(store):
    def started(name, *queues):
        return store.run(calls.worker_started(name, "host", 1, list(queues), 10, "0"))

    started("mails", "mail")
    both = started("both", "paper", "mail", "sms")
    started("prints", "paper")
    started("idle")
    for queue in ("mail", "paper", "paper"):
        enqueue(store, queue=queue)
        claim_one(store, queues=(queue,), worker=both)

    def listed(*queues):
        found = store.run(calls.list_workers(most=2, queues=queues))
        return [(worker.name, worker.queues, worker.running) for worker in found]

    assert listed("mail") == [("both", ["mail"], 1), ("mails", ["mail"], 0)]
    assert listed("sms", "mail") == [("both", ["mail", "sms"], 1), ("mails", ["mail"], 0)]
    assert listed("nowhere") == listed() == []
    assert [(worker.name, worker.running) for worker in store.run(calls.list_workers(most=3))] == [
        ("idle", 0), ("prints", 0), ("both", 3),
    ]  # fmt: skip


def test_the_queues_of_jobs_are_told_wherever_they_stand(store):
    waiting, later = enqueue(store, queue="mail"), enqueue(store, queue="paper", delay=timedelta(hours=1))
    dead, done = (enqueue(store, queue=queue) for queue in ("dead", "done"))
    store.run(calls.bury(claim_one(store, queues=("dead",)), "no use"))
    store.run(calls.complete(claim_one(store, queues=("done",)), None))

    told = store.run(calls.queues_of([waiting, later, dead, done, waiting, 0, -1, 1 << 62]))

    assert told == {waiting: "mail", later: "paper", dead: "dead", done: "done"}
    assert store.run(calls.queues_of([])) == {}


def test_health_tells_the_age_of_the_last_round(store, clock):
    never, *_ = store.run(calls.health())
    store.run(calls.round_(SECOND))
    store.run(calls.reap())
    clock.advance(seconds=30)

    age, *_ = store.run(calls.health())

    assert never is None
    assert age == pytest.approx(30, abs=3)


def test_a_paused_queue_is_behind_on_purpose(store, clock):
    enqueue(store)
    clock.advance(minutes=1)
    _, behind, _ = store.run(calls.health())

    store.run(calls.pause("default"))

    assert behind == pytest.approx(60, abs=3)
    assert store.run(calls.health())[1] == 0


def test_the_dead_are_counted_by_the_filter_that_would_replay_them(store):
    for queue in ("mail", "mail", "paper"):
        enqueue(store, queue=queue)
        store.run(calls.bury(claim_one(store, queues=(queue,)), "no use"))

    counted = store.run(calls.count_dead(queue="mail"))

    assert counted == len(store.run(calls.replay_many(queue="mail"))) == 2
    assert store.run(calls.count_dead()) == 1


def test_a_sound_installation_gives_the_doctor_nothing_to_say(store):
    enqueue(store)
    claim_one(store)

    facts = store.run(calls.doctor())

    assert (
        facts.ledger_strays,
        facts.jobs_in_two_places,
        facts.jobs_behind_the_floor,
        facts.silent_workers,
    ) == (0, 0, 0, 0)


def test_the_doctor_finds_what_is_out_of_place(store, clock, db, database):
    worker_named(store, "silent")
    behind = enqueue(store)
    db.execute("update faultline.lanes set floor = 100 where queue = 'default'")
    db.execute("select setval('faultline.places', 9000000)")
    stray = enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    db.execute(
        "insert into faultline.dead"
        " (id, died_at, created_at, lane, attempt, max_attempts, crashes, task, reason, args, key_seed)"
        " select id, created_at, created_at, lane, 1, 1, 0, task, 'by hand', args, key_seed"
        " from faultline.active"
    )
    clock.advance(minutes=1)

    facts = store.run(calls.doctor())

    assert behind < 100 < stray
    assert (
        facts.ledger_strays,
        facts.jobs_in_two_places,
        facts.jobs_behind_the_floor,
        facts.silent_workers,
    ) == (1, 1, 1, 1)


def test_the_doctor_knows_the_oldest_transaction(store, database):
    with psycopg.connect(database) as old:
        old.execute("select 1")

        assert store.run(calls.doctor()).oldest_transaction_seconds > 0


def test_the_log_only_grows(store):
    before = store.run(calls.wal_written())
    enqueue(store)

    assert store.run(calls.wal_written()) > before


def test_the_schemas_version_is_told_to_every_role_that_may_call(db):
    newest, oldest_client = db.execute("select * from faultline.schema_version()").fetchone()

    assert newest >= oldest_client >= 1
