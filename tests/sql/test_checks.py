"""CHECKs of whole rows: what would stop its neighbours cannot be written, by any path."""

from datetime import timedelta

import psycopg
import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.support import claim_one, enqueue

CHECKS_END = 2**62


@pytest.fixture(scope="module")
def database(shared):
    """A queued, a running, a waiting and a dead job; what is refused leaves them as they are."""
    store = Store(shared)
    enqueue(store)
    store.run(calls.bury(claim_one(store), "no use"))
    enqueue(store)
    store.run(calls.snooze(claim_one(store), timedelta(days=365)))
    enqueue(store)
    claim_one(store)
    enqueue(store)
    store.close()
    return shared


BROKEN = [
    ("active", "token = -1"),
    ("active", f"token = {CHECKS_END}"),
    ("active", "lease_until = clock_timestamp()"),
    ("active", "claim = gen_random_uuid()"),
    ("active", "deadline_at = clock_timestamp()"),
    ("active", "claimed_at = clock_timestamp()"),
    ("active", "attempt = -1"),
    ("active", "attempt = max_attempts"),
    ("active", "attempt = max_attempts + 1"),
    ("active", "crashes = -1"),
    ("active", "crashes = 32767"),
    ("later", "token = -1"),
    ("later", f"token = {CHECKS_END}"),
    ("later", "attempt = -1"),
    ("later", "attempt = max_attempts"),
    ("later", "crashes = 32767"),
    ("later", "run_at = 'infinity'"),
    ("dead", "token = -1"),
    ("dead", f"token = {CHECKS_END}"),
]


@pytest.mark.parametrize(("table", "damage"), BROKEN)
def test_what_would_stop_its_neighbours_is_refused(db, table, damage):
    """A row that no verb could carry on fails the batch it is in, so no row may become one."""
    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute(f"update faultline.{table} set {damage}")


@pytest.mark.parametrize(
    "damage",
    [
        "lease_until = null",
        "lease_until = 'infinity'",
        "claim = null",
        "claimed_at = null",
        "deadline_at = null",
        f"token = {CHECKS_END}",
        "attempt = max_attempts + 1",
    ],
)
def test_a_running_job_cannot_be_without_a_whole_lease(db, damage):
    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute(f"update faultline.active set {damage} where claim is not null")


def test_the_error_of_a_broken_lease_is_a_sentence(db):
    with pytest.raises(psycopg.errors.CheckViolation, match="a_running_job_is_leased"):
        db.execute("update faultline.active set claim = null")


@pytest.mark.parametrize("table", ["settings", "rounds"])
def test_there_is_one_row_of_what_is_true_of_the_whole(db, table):
    with pytest.raises(psycopg.Error):
        db.execute(f"insert into faultline.{table} select * from faultline.{table}")
    with pytest.raises(psycopg.errors.CheckViolation, match=f"there_is_one_row_of_{table}"):
        db.execute(f"update faultline.{table} set only_row = false")


def test_a_lane_belongs_to_a_queue_that_exists(db):
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        db.execute("insert into faultline.lanes (queue, priority) values ('nowhere', 0)")


def test_a_queue_has_one_lane_a_priority(db):
    with pytest.raises(psycopg.errors.UniqueViolation, match="a_queue_has_one_lane_a_priority"):
        db.execute("insert into faultline.lanes (queue, priority) values ('default', 0)")
