"""Scheduling: the chore that fires schedules; each is decided for itself."""

import asyncio
from datetime import timedelta

import psycopg
import pytest

from faultline.store import calls
from faultline.store.session import DbSession
from faultline.watchdog.firings import timing_of_row
from faultline.watchdog.scheduling import BATCH, COMPUTED, Scheduling
from tests.watchdog.test_announcing import alone, heard, listener  # noqa: F401

TICK = timedelta(seconds=1)


def set_many(db, count, every="1 hour", **columns):
    names = "".join(f", {name}" for name in columns)
    values = "".join(f", '{value}'" for value in columns.values())
    db.execute("select faultline.lane_of('default', 0)")
    db.execute(
        f"""insert into faultline.schedules (name, task, queue, priority, args, max_attempts, every,
            starts_at, next_at, created_at, changed_at{names})
        select 's' || n, 'report', 'default', 0, '{{}}', 10, '{every}', now() - interval '1 hour',
               now(), now(), now(){values}
        from generate_series(1, {count}) as n"""
    )


def turn(database, times=1):
    async def act(line):
        chore = Scheduling(line, TICK, lambda: True)
        return [await chore() for _ in range(times)]

    return alone(database, act)


def test_all_that_is_due_is_fired_in_one_turn_and_workers_are_woken(database, db, listener):  # noqa: F811
    set_many(db, 2 * BATCH + 3)
    turn(database)
    assert db.execute("select count(*), count(distinct job_id) from faultline.occurrences").fetchone() == (
        2 * BATCH + 3, 2 * BATCH + 3,
    )  # fmt: skip
    assert set(heard(listener)) == {"default"}


def test_many_watchdogs_at_once_fire_each_once(database, db):
    set_many(db, 2 * BATCH)

    async def together():
        lines = [DbSession(database) for _ in range(3)]
        try:
            await asyncio.gather(*(Scheduling(line, TICK, lambda: True)() for line in lines))
        finally:
            for line in lines:
                await line.close()

    asyncio.run(together())
    assert db.execute("select count(*) from faultline.active").fetchone() == (2 * BATCH,)


def test_one_bad_row_does_not_stop_the_others(database, db, caplog):
    set_many(db, 3)
    db.execute("alter table faultline.active add constraint no_s2 check (task <> 'broken')")
    db.execute("update faultline.schedules set task = 'broken' where name = 's2'")
    turn(database)
    assert db.execute("select name from faultline.schedules where error is not null").fetchall() == [("s2",)]
    assert db.execute("select count(*) from faultline.active").fetchone() == (2,)
    assert "schedule s2 is failing" in caplog.text


def test_a_queue_that_is_held_by_another_does_not_stop_the_others(database, db):
    set_many(db, 2)
    db.execute("update faultline.schedules set queue = 'held' where name = 's1'")
    with psycopg.connect(database) as other:
        other.execute("insert into faultline.queues (name) values ('held')")
        turn(database)
        assert db.execute("select schedule from faultline.occurrences").fetchall() == [("s2",)]
        other.rollback()
    db.execute("update faultline.schedules set held_until = null")
    turn(database)
    assert db.execute("select count(*) from faultline.occurrences").fetchone() == (2,)


def test_a_watchdog_that_is_not_on_duty_looks_for_nothing(database, db):
    set_many(db, 1)

    async def act(line):
        return await Scheduling(line, TICK, lambda: False)()

    assert alone(database, act) is None
    assert db.execute("select count(*) from faultline.occurrences").fetchone() == (0,)


def test_it_comes_again_when_the_next_one_is_due(database, db):
    set_many(db, 1)
    db.execute("update faultline.schedules set next_at = now() + interval '400 ms'")
    (pause,) = turn(database)
    assert 0 < pause < 0.4


def test_a_cron_text_is_computed_and_looked_at_again_at_once(database, db, store):
    store.run(calls.set_schedule({"name": "a", "task": "report", "cron": "@hourly"}))
    assert turn(database, 2)[0] < 0.1
    assert db.execute("select extract(minute from next_at)::int from faultline.schedules").fetchone() == (0,)


@pytest.mark.parametrize("policy", ["skip", "once"])
def test_a_time_whose_zone_is_gone_is_fired_unless_it_was_missed(policy, database, db):
    set_many(db, 1, missed=policy)
    db.execute(
        "update faultline.schedules set every = null, cron = '0 * * * *', time_zone = 'No/Where', "
        "next_at = now() - interval '1 hour'"
    )
    turn(database)
    jobs = {"skip": 0, "once": 1}[policy]
    assert db.execute("select count(*) from faultline.active").fetchone() == (jobs,)


def test_what_cannot_be_computed_stops_no_other_schedule(database, db, monkeypatch):
    """Whatever is raised, it is noted in the schedule's own row."""

    def broken(due):
        if due.name in ("s1", "s2"):
            raise OverflowError("date value out of range")
        return timing_of_row(due)

    monkeypatch.setattr("faultline.watchdog.firings.timing_of_row", broken)
    set_many(db, 3)
    db.execute("update faultline.schedules set next_at = null where name = 's1'")
    turn(database)
    assert db.execute(
        "select name, error from faultline.schedules where error is not null order by name"
    ).fetchall() == [
        (name, "its next time cannot be computed: OverflowError: date value out of range")
        for name in ("s1", "s2")
    ]
    assert db.execute("select schedule from faultline.occurrences order by 1").fetchall() == [
        ("s2",),
        ("s3",),
    ]


def test_what_is_due_is_fired_before_next_times_are_computed(database, db, monkeypatch):
    set_many(db, 2)
    db.execute("update faultline.schedules set next_at = null where name = 's1'")

    async def broken(chore, uncomputed):
        raise RuntimeError("computing fails as a whole")

    monkeypatch.setattr(Scheduling, "_compute", broken)
    with pytest.raises(RuntimeError):
        turn(database)
    assert db.execute("select schedule from faultline.occurrences").fetchall() == [("s2",)]


def test_a_turn_computes_a_bounded_batch_without_suggestions(database, db, monkeypatch):
    def no_hint(name):
        raise AssertionError("a suggestion is for people")

    monkeypatch.setattr("faultline.schedules.zones._hint", no_hint)
    set_many(db, COMPUTED + 5)
    db.execute(
        "update faultline.schedules set next_at = null, every = null, cron = '* * * * *', "
        "time_zone = 'Mars/' || name"
    )
    turn(database)
    seen = "select count(*) from faultline.schedules where error like 'there is no time zone%'"
    assert db.execute(seen).fetchone() == (COMPUTED,)
    turn(database)
    assert db.execute(seen).fetchone() == (COMPUTED + 5,)
