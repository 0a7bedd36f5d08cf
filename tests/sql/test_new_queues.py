"""The first job of a queue: a transaction that makes the queue and stays open holds others up for seconds."""

import time
from typing import Any

import psycopg
import pytest

from faultline.store import calls
from faultline.store.call import Call
from faultline.store.pool import Store
from faultline.store.session import is_of_this_moment
from tests.support import enqueue, new_job

MAKE: list[Call[Any]] = [
    calls.worker_started("ada", "host", 1, ["mail"], 10, "0"),
    calls.enqueue_many([new_job(queue="mail")]),
]


@pytest.mark.parametrize("making", MAKE, ids=lambda call: call.name)
def test_a_queue_in_the_making_is_waited_for_with_a_bound(store, database, making):
    """The error names the queue, nothing was written, and the call goes through once the other has ended."""
    with psycopg.connect(database) as other:
        Store.run_in(other, making)
        began = time.monotonic()
        with pytest.raises(psycopg.errors.LockNotAvailable, match="queue mail is being made") as refused:
            enqueue(store, queue="mail")
        took = time.monotonic() - began
        other.rollback()

    assert 4 < took < 60
    assert is_of_this_moment(refused.value)
    assert "nothing was written" in str(refused.value)
    assert enqueue(store, queue="mail")


def test_a_queue_that_is_there_by_then_is_used(store, database):
    with psycopg.connect(database) as other:
        Store.run_in(other, MAKE[0])
        other.commit()

        assert enqueue(store, queue="mail")


@pytest.mark.parametrize(("limit", "after"), [("0", "0"), ("1min", "1min"), ("50ms", "50ms")])
def test_the_callers_own_limit_is_as_it_was(database, limit, after):
    with psycopg.connect(database) as conn:
        conn.execute(f"set local lock_timeout = '{limit}'")
        conn.execute("select faultline.enqueue('t', '{}', queue => 'fresh')")

        assert conn.execute("show lock_timeout").fetchone() == (after,)


def test_a_lower_limit_of_the_callers_is_kept(database):
    with psycopg.connect(database) as other, psycopg.connect(database) as conn:
        Store.run_in(other, MAKE[0])
        conn.execute("set local lock_timeout = '50ms'")
        began = time.monotonic()

        with pytest.raises(psycopg.errors.LockNotAvailable):
            conn.execute("select faultline.enqueue('t', '{}', queue => 'mail')")

        assert time.monotonic() - began < 4
