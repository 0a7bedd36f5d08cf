"""Whatever is asked in whatever order: one place and one end a job, one entry a lease, tokens that grow."""

import random
from contextlib import suppress
from datetime import timedelta

import pytest

from faultline.errors import JobNotFound, LeaseLost, WrongState
from faultline.store import calls
from tests.support import LEASE, NOW, claim_many, enqueue

SECOND = timedelta(seconds=1)


class Walk:
    """A walk through the verbs, by one seed; all leases are kept, so that old ones are used too."""

    def __init__(self, store, clock, seed):
        self.store, self.clock, self.chance = store, clock, random.Random(seed)
        self.jobs, self.leases = [], []
        self.acts = [
            self.enqueue, self.claim, self.claim, self.settle, self.settle, self.settle, self.settle_many,
            self.beat, self.time_passes, self.watchdog, self.watchdog, self.person,
        ]  # fmt: skip

    def step(self):
        with suppress(LeaseLost, WrongState, JobNotFound):  # refused by name, as it should be
            self.chance.choice(self.acts)()

    def enqueue(self):
        key = self.chance.choice([None, None, "a", "b"])
        self.jobs.append(enqueue(self.store, max_attempts=self.chance.randint(1, 3), key=key, key_for=SECOND))

    def claim(self):
        self.leases += claim_many(self.store, self.chance.randint(1, 3))

    def settle(self):
        if self.leases:
            lease = self.chance.choice(self.leases)
            ways = [
                calls.complete(lease, "1"), calls.fail(lease, "boom", NOW), calls.bury(lease, "no use"),
                calls.snooze(lease, SECOND), calls.release(lease), calls.cancel_claimed(lease),
                calls.fence(lease),
            ]  # fmt: skip
            self.store.run(self.chance.choice(ways))

    def settle_many(self):
        some = self.chance.sample(self.leases, min(4, len(self.leases)))
        self.store.run(calls.complete_many(some, ["1"] * len(some)))

    def beat(self):
        self.store.run(calls.heartbeat(self.chance.sample(self.leases, min(4, len(self.leases))), LEASE))

    def time_passes(self):
        self.clock.advance(seconds=self.chance.choice([1, 8, 20]))

    def watchdog(self):
        self.store.run(
            self.chance.choice([calls.reap(), calls.promote(), calls.rescue(), calls.floors(), calls.prune()])
        )

    def person(self):
        if self.jobs:
            job_id = self.chance.choice(self.jobs)
            self.store.run(
                self.chance.choice([calls.cancel(job_id), calls.replay(job_id), calls.retry_now(job_id)])
            )


IN_TWO_PLACES = """
select id from (
  select id from faultline.active union all select id from faultline.later
  union all select id from faultline.dead union all select job_id from faultline.ledger where slot = 0
) as places group by id having count(*) <> 1
"""

OUT_OF_ORDER = """
select job_id from (
  select job_id, token, lag(token) over (partition by job_id order by settled_at, slot = 0) as before
  from faultline.ledger
  where claim is not null
) as entries where token <= before
"""

OVER_BUDGET = "select id from faultline.jobs where attempt > max_attempts or crashes > attempt"

BEHIND_ITS_LEDGER = """
select job.id from faultline.jobs as job
join faultline.ledger as entry on entry.job_id = job.id
where entry.token > job.token
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_walk_through_all_verbs_breaks_nothing(store, clock, db, seed):
    walk = Walk(store, clock, seed)

    for _ in range(250):
        walk.step()

    for broken in (IN_TWO_PLACES, OUT_OF_ORDER, OVER_BUDGET, BEHIND_ITS_LEDGER):
        assert db.execute(broken).fetchall() == []
    lost = [job_id for job_id in set(walk.jobs) if store.run(calls.get(job_id)) is None]
    assert lost == []
    ended = db.execute("select count(*) from faultline.ledger where claim is not null").fetchone()[0]
    held = db.execute("select count(*) from faultline.active where claim is not null").fetchone()[0]
    assert ended + held == len(walk.leases)
