"""A database at work holds at every moment: in one snapshot every move of a job is whole."""

import random
import threading
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg

from faultline.audit import examine
from faultline.errors import FaultlineError, LeaseLost
from faultline.lease import Lease
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import NOW, SECOND, claim_many, enqueue

Db = psycopg.Connection[Any]
AUDITS = 25
INTERESTING = ("refused", "reaped", "replayed", "cancelled")
SHORT = timedelta(milliseconds=500)


def test_no_false_alarm_while_many_hands_change_everything(db: Db, database: str):
    over, seen = threading.Event(), Counter[str]()
    hands = [threading.Thread(target=_work, args=(database, number, over, seen)) for number in range(3)]
    for hand in hands:
        hand.start()

    try:
        reports = [examine(db) for _ in range(AUDITS)]
        while not all(map(seen.get, INTERESTING)) and any(hand.is_alive() for hand in hands):
            reports.append(examine(db))
    finally:
        over.set()
        for hand in hands:
            hand.join()

    assert not [str(report) for report in reports if not report.holds]
    assert all(map(seen.get, INTERESTING)), f"void: {seen}"
    assert reports[-1]["OneEffect"].looked_at > 0
    assert examine(db).holds


def _work(dsn: str, seed: int, over: threading.Event, seen: Counter[str]) -> None:
    """Do at random what workers, watchdogs and operators do, until told to stop."""
    dice, store = random.Random(seed), Store(dsn)
    kept: list[Lease] = []
    while not over.is_set():
        job_id = enqueue(store, max_attempts=2, key=dice.choice([None, f"key-{dice.random()}"]))
        with suppress(FaultlineError):
            if dice.random() < 0.1:
                store.run(calls.cancel(job_id))
                seen["cancelled"] += 1
        kept += claim_many(store, 5, lease=SHORT)
        dice.shuffle(kept)
        for lease in [kept.pop() for _ in range(min(4, len(kept)))]:
            _settle(store, dice, lease, seen)
        seen["reaped"] += len(store.run(calls.reap()))
        store.run(calls.promote())
        seen["replayed"] += len(store.run(calls.replay_many()))
        store.run(calls.prune())
    store.close()


def _settle(store: Store, dice: random.Random, lease: Lease, seen: Counter[str]) -> None:
    try:
        match dice.randrange(7):
            case 0:
                store.run(calls.fail(lease, "not yet", NOW))
            case 1:
                store.run(calls.snooze(lease, NOW))
            case 2:
                store.run(calls.release(lease, "stopping", SECOND))
            case 3:
                store.run(calls.bury(lease, "no use"))
            case 4:
                pass  # forgotten: its lease runs out
            case 5:
                store.run(calls.complete_many([lease], [None]))
            case _:
                store.run(calls.complete(lease, None))
    except LeaseLost:
        store.run(calls.refused(lease))
        seen["refused"] += 1
