"""Claims, completions and enqueues are durable whatever the session was told."""

from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.support import LEASE, NOW, claim_one, enqueue, new_job

VERBS = {
    "enqueue": lambda lease: calls.enqueue(new_job()),
    "enqueue_many": lambda lease: calls.enqueue_many([new_job(key="k")]),
    "enqueue_each": lambda lease: calls.enqueue_each([new_job(), new_job(key="k")]),
    "claim": lambda lease: calls.claim(["default"], 1, lease=LEASE, claim=uuid4()),
    "complete": lambda lease: calls.complete(lease, "null"),
    "complete_many": lambda lease: calls.complete_many([lease], ["null"]),
    "fail": lambda lease: calls.fail(lease, "boom", NOW),
    "fail_many": lambda lease: calls.fail_many([lease], ["boom"], [NOW]),
    "bury": lambda lease: calls.bury(lease, "no use"),
    "snooze": lambda lease: calls.snooze(lease, timedelta(seconds=1)),
    "release": lambda lease: calls.release(lease),
    "cancel_claimed": lambda lease: calls.cancel_claimed(lease),
    "cancel": lambda lease: calls.cancel(lease.job_id),
    "promote": lambda lease: calls.promote(),
}


def level_after(conn, call):
    """What the commit of a transaction with this call will wait for."""
    Store.run_in(conn, call)
    return conn.execute("show synchronous_commit").fetchone()[0]


@pytest.mark.parametrize("verb", VERBS)
def test_a_commit_that_would_not_wait_is_made_to(store, database, verb):
    enqueue(store)
    lease = claim_one(store)

    with psycopg.connect(database, options="-c synchronous_commit=off") as conn:
        assert level_after(conn, VERBS[verb](lease)) == "on"


@pytest.mark.parametrize(
    ("asked", "waited"),
    [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
def test_it_is_raised_where_it_is_too_low_and_never_lowered(database, asked, waited):
    with psycopg.connect(database, options=f"-c synchronous_commit={asked}") as conn:
        assert level_after(conn, calls.enqueue(new_job())) == waited


def test_it_is_raised_for_that_transaction_only(database):
    with psycopg.connect(database, options="-c synchronous_commit=off") as conn:
        Store.run_in(conn, calls.enqueue(new_job()))
        conn.commit()

        assert conn.execute("show synchronous_commit").fetchone()[0] == "off"


def test_reaping_is_durable(store, clock, database):
    enqueue(store)
    claim_one(store)
    clock.advance(minutes=1)

    with psycopg.connect(database, options="-c synchronous_commit=off") as conn:
        assert level_after(conn, calls.reap()) == "on"


def test_a_heartbeat_may_be_lost(store, database):
    """A lost beat costs no safety, only an early takeover after a crash of the server."""
    enqueue(store)
    lease = claim_one(store)

    with psycopg.connect(database, options="-c synchronous_commit=off") as conn:
        assert level_after(conn, calls.heartbeat([lease], LEASE)) == "off"
