"""Leading: the slow chores are done by one, whose term ends when it dies."""

from datetime import timedelta

from faultline.store import calls
from tests.support import claim_many, enqueue, new_job
from tests.worker.harness import eventually, execute, rows


def leader(dsn: str) -> int | None:
    leading: list[tuple[int | None]] = rows(dsn, "select leader from faultline.rounds")
    return leading[0][0]


def test_one_leads_and_the_others_stand_by(database, store, guard):
    guard("first")
    first = eventually(lambda: leader(database))
    guard("second")

    eventually(
        lambda: rows(
            database, "select 1 from faultline.rounds where leads_until > faultline.now() + interval '9 s'"
        )
    )

    assert leader(database) == first
    assert rows(database, "select term from faultline.rounds") == [(1,)]


def test_a_dead_leader_is_replaced(database, store, guard, clock):
    dead = guard("dead")
    first = eventually(lambda: leader(database))
    dead.leave()
    clock.advance(seconds=11)

    guard("heir")

    heir = eventually(lambda: (now := leader(database)) != first and now)
    assert rows(database, "select term from faultline.rounds where leader = %s", heir) == [(2,)]


def test_the_ledgers_ranges_stay_ahead_of_the_jobs(database, store, guard):
    execute(database, "select setval('faultline.places', 2500000)")
    enqueue(store)
    guard()

    # By name, not by count: the same leader drops the empty ranges behind.
    eventually(lambda: rows(database, "select to_regclass('faultline.ledger_4')") != [(None,)])


def test_floors_rise_with_what_is_done(database, store, guard):
    store.run(calls.enqueue_many([new_job()] * 2))
    done, _ = claim_many(store)  # the other runs on: a lane that is empty is made as new
    store.run(calls.complete(done, "null"))
    execute(database, "select setval('faultline.places', 20000)")
    guard()

    eventually(lambda: rows(database, "select 1 from faultline.lanes where floor > 10000"))


def test_old_things_are_pruned_and_the_damaged_are_set_aside(database, store, guard, clock):
    job = enqueue(store, key="order-7", key_for=timedelta(seconds=1))
    store.run(calls.cancel(job))
    damaged = enqueue(store)
    execute(database, "update faultline.active set token = 4611686018427387903 where id = %s", damaged)
    clock.advance(hours=1)
    guard()

    eventually(lambda: rows(database, "select count(*) from faultline.keys") == [(0,)])
    eventually(lambda: rows(database, "select id from faultline.dead") == [(damaged,)])


def test_a_failing_chore_of_the_leader_keeps_no_other_from_its_turn(database, store, guard, clock, caplog):
    for broken in ("floors() returns int", "partitions() returns int"):
        execute(database, f"create or replace function faultline.{broken} language plpgsql as"
                " $$ begin raise exception 'broken' using errcode = 'XX000'; end $$")  # fmt: skip
    job = enqueue(store, key="order-7", key_for=timedelta(seconds=1))
    store.run(calls.cancel(job))
    clock.advance(hours=1)
    guard()

    eventually(lambda: rows(database, "select count(*) from faultline.keys") == [(0,)])

    failed = {record.message.partition(" ")[0] for record in caplog.records if "failed" in record.message}
    assert failed == {"floors", "partitions"}
