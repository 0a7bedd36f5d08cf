"""Announcing: one looks for jobs that came without a hint, so that idle workers need not; few stand by."""

import asyncio
import time
from datetime import timedelta

import psycopg
import pytest

from faultline.store import calls
from faultline.store.session import DbSession
from faultline.watchdog.chores import LATE, SOONEST, STANDBY_TICKS, Announcing, Leading, Rounds
from tests.support import claim_one, enqueue, outcomes
from tests.worker.harness import eventually, rows

TICK = timedelta(minutes=1)  # long, so that the time a test takes is nothing beside it
ASKING_TO_LEAD = (
    "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    " and query like '%faultline.lead(%'"
)


@pytest.fixture
def listener(database):
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("listen faultline")
        yield conn


def heard(conn, seconds=0.5):
    return [notice.payload for notice in conn.notifies(timeout=seconds)]


def alone(dsn, act):
    """Run a chore by hand, over a line of its own."""

    async def run():
        line = DbSession(dsn)
        try:
            return await act(line)
        finally:
            await line.close()

    return asyncio.run(run())


def test_a_job_that_came_without_a_hint_is_announced(database, store, guard, listener):
    guard()
    eventually(lambda: rows(database, "select 1 from faultline.rounds where leader is not null"))

    enqueue(store, queue="mail")

    assert [notice.payload for notice in listener.notifies(timeout=60, stop_after=1)] == ["mail"]


def test_a_job_is_announced_once_and_the_next_first_one_again(database, store, listener):
    async def act(line):
        announcing = Announcing(line, lambda: True)
        enqueue(store)
        said = []
        for _ in range(3):
            await announcing()
            said.append(heard(listener))
        claim_one(store)
        enqueue(store)
        await announcing()
        return [*said, heard(listener)]

    assert alone(database, act) == [["default"], [], [], ["default"]]


def test_a_job_behind_one_that_stays_the_first_is_announced(database, store, listener):
    """The first may be of an app that has no worker here: jobs behind it are for others."""

    async def act(line):
        announcing = Announcing(line, lambda: True)
        enqueue(store, task="theirs")
        await announcing()
        said = [heard(listener)]
        enqueue(store, task="ours")
        await announcing()
        return [*said, heard(listener)]

    assert alone(database, act) == [["default"], ["default"]]


def test_who_does_not_lead_announces_nothing_and_asks_nothing(database, store, listener):
    async def act(line):
        enqueue(store)
        assert await Announcing(line, lambda: False)() is None
        return line._conn

    assert alone(database, act) is None
    assert heard(listener) == []


def test_one_slow_look_does_not_silence_the_next_ones(database, store):
    async def act(line):
        announcing = Announcing(line, lambda: True)
        async with line._turn:  # another chore has the line
            slow = asyncio.create_task(announcing())
            await asyncio.sleep(1)
        return await slow

    assert alone(database, act) == pytest.approx(0.25)


def test_the_one_on_duty_comes_back_after_a_tick_and_the_others_later(database, store):
    async def act(line):
        first, second = Rounds(line, TICK), Rounds(line, TICK)
        return await first(), first.on_duty, await second(), second.on_duty

    assert alone(database, act) == (60.0, True, 60 * STANDBY_TICKS, False)


def test_the_one_on_duty_stays_so_when_it_comes_early_for_a_job(database, store, clock):
    """Else it stands by, and the next job with a short delay waits for two ticks."""

    async def act(line):
        rounds, turns = Rounds(line, TICK), []
        enqueue(store, delay=TICK / 4)
        for _ in range(2):
            turns.append((await rounds(), rounds.on_duty))
            clock.advance(TICK / 4)
        return turns

    (first, on_duty), early = alone(database, act)
    assert first == pytest.approx(15.0, abs=5.0)
    assert on_duty
    assert early == (60.0, True)


def test_a_due_job_that_is_locked_is_looked_at_ever_more_seldom(database, store, clock):
    """A producer's transaction may hold it for long; each look is four calls."""

    async def act(line):
        rounds = Rounds(line, TICK)
        job = enqueue(store, delay=TICK / 4)
        await rounds()
        clock.advance(TICK / 2)
        with psycopg.connect(database) as conn:
            conn.execute("select from faultline.later where id = %s for update", [job])
            pauses = [await rounds() for _ in range(4)]
        return pauses, await rounds()

    assert alone(database, act) == ([SOONEST * 2, SOONEST * 4, SOONEST * 8, SOONEST * 16], 60.0)


def test_who_stands_by_looks_again_before_a_gap_would_make_all_hold_fire():
    """It may look a moment before the round is late, and must be back before it is three times as late."""
    assert LATE + STANDBY_TICKS < 3 * LATE


def test_who_stands_by_leaves_the_round_to_the_one_on_duty_until_it_is_late(database, store, clock):
    async def act(line):
        first, second = Rounds(line, TICK), Rounds(line, TICK)
        turns = []
        for one, moved in ((first, 0), (second, 0), (second, 0.92), (first, 0), (second, 1.2), (first, 0)):
            clock.advance(TICK * moved)
            await one()
            turns.append(one.on_duty)
        return turns

    assert alone(database, act) == [True, False, False, True, True, False]


def test_a_process_that_stood_still_after_its_round_reaps_nothing_by_it(database, store):
    """Its own jobs are about to be given back or renewed: the gap is noted first, and reaping stops."""
    tick = timedelta(milliseconds=100)

    async def act(line):
        rounds, ask = Rounds(line, tick), line.run
        await rounds()
        job = enqueue(store)
        claim_one(store, lease=timedelta(milliseconds=500))

        async def stand_still(call):
            answer = await ask(call)
            time.sleep(0.8)  # noqa: ASYNC251 - the whole process, as a handler that blocks the loop does
            return answer

        line.run = stand_still
        await asyncio.sleep(0.12)
        again = await rounds()
        line.run = ask
        await rounds()
        return again, outcomes(store, job)

    assert alone(database, act) == (SOONEST, [])


def test_who_stands_by_does_not_ask_to_lead(database, store):
    worker = store.run(calls.worker_started("w", "host", 1, ["default"], 1, "0"))

    async def act(line):
        await Leading(line, worker, lambda: False)()
        return line._conn

    assert alone(database, act) is None


def test_a_leader_that_leaves_lets_the_next_one_lead_at_once(database, store, guard):
    leaving = guard("leaving")
    first = eventually(lambda: rows(database, "select leader from faultline.rounds where leader is not null"))
    eventually(lambda: not rows(database, ASKING_TO_LEAD))  # it has read the answer: now it knows, too
    leaving.leave()

    assert rows(database, "select leads_until <= faultline.now() from faultline.rounds") == [(True,)]
    guard("heir")
    eventually(lambda: rows(database, "select 1 from faultline.rounds where leader <> %s", first[0][0]))
