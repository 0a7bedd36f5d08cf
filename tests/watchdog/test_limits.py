"""The watchdog and limits: slots that were freed without a claim, and buckets that fill."""

import asyncio
from datetime import timedelta

from faultline.limit import Limit
from faultline.store import calls
from faultline.store.session import DbSession
from faultline.watchdog.chores import Rounds
from tests.support import claim_many, new_job, worker_named

TICK = timedelta(seconds=1)


def round_of(dsn):
    """One turn of the rounds: the seconds until the next."""

    async def turn():
        line = DbSession(dsn)
        try:
            return await Rounds(line, TICK)()
        finally:
            await line.close()

    return asyncio.run(turn())


def limited(store, limit):
    store.run(calls.set_limit("api", limit))
    store.run(calls.limit_task("test_task", "api"))
    worker_named(store, "w")
    store.run(calls.enqueue_many([new_job() for _ in range(3)]))


def test_a_round_admits_what_no_claim_came_for(database, store, db):
    limited(store, Limit(total=2))

    round_of(database)

    assert db.execute("select count(*) from faultline.active").fetchone() == (2,)


def test_the_next_round_comes_with_the_next_token(database, store, clock):
    limited(store, Limit(rate="4/s", burst=1))
    claim_many(store)

    assert 0 < round_of(database) <= 0.25
    clock.advance(hours=1)
    claim_many(store)
    store.run(calls.set_limit("api", Limit(total=1)))
    assert round_of(database) == TICK.total_seconds()
