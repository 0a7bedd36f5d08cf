"""A big ledger is walked by ranges: however much is wrong with it, the client's memory stays small."""

import tracemalloc
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from faultline.audit import examine
from faultline.audit.walk import RANGE_IDS
from faultline.store.pool import Store
from tests.audit import lives
from tests.support import Clock

Db = psycopg.Connection[Any]
ROWS = 200_000
MEMORY_MAX = 4 * 1024 * 1024

MANY = """
insert into faultline.ledger (job_id, slot, token, created_at, claimed_at, settled_at, claim, lane, attempt,
                              max_attempts, crashes, outcome, task)
select one.job_id + number, 0, number, one.created_at, one.claimed_at, one.settled_at, gen_random_uuid(),
       one.lane, 1, 5, 0, 'succeeded', one.task
from faultline.ledger as one
cross join generate_series(1, %s) as number
"""


@pytest.fixture
def big(db: Db, store: Store, clock: Clock) -> Db:
    """Two hundred thousand successes without ANALYZE: the planner knows nothing of them."""
    lives.succeeds(store, clock)
    db.execute(MANY.encode(), [ROWS - 1])
    return db


def test_two_hundred_thousand_entries_are_walked_in_bounded_memory(big: Db):
    told: list[int] = []
    tracemalloc.start()

    sound = examine(big, limit=timedelta(minutes=1), tell=lambda done, total: told.append(done))
    _, calm = tracemalloc.get_traced_memory()

    assert sound.holds, str(sound)
    assert sound["NoZombie"].looked_at == ROWS
    assert len(told) == ROWS // RANGE_IDS + 1

    # Every single row is now against two invariants: counted by the thousand, told by the twenty.
    big.execute("update faultline.ledger set claim = null, attempt = 3")
    tracemalloc.reset_peak()
    broken = examine(big)
    _, alarmed = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert {verdict.name for verdict in broken.violated} == {"NoZombie", "LedgerReplays"}
    assert broken["NoZombie"].found >= ROWS // RANGE_IDS * 1_000
    assert len(broken["NoZombie"].examples) == 20
    assert max(calm, alarmed) < MEMORY_MAX
