"""Promise 12: a job has the same idempotency key in every attempt, and no other job, anywhere, has it."""

import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from faultline.embedded.binaries import find_binaries
from faultline.job import Job
from faultline.lease import Lease
from faultline.store import calls
from faultline.store.pool import Store
from tests.servers import Server
from tests.support import LEASE, NOW, SECOND, Clock, enqueue, new_job

NAMES = ("charge", "x" * 200, "a name with spaces/and?signs")


def claimed(store: Store) -> list[tuple[Job, Lease]]:
    """Every job that is due, as its handler has it, and its lease; in the order of their ids."""
    claim = uuid4()
    rows = store.run(calls.claim(("default",), 1000, lease=LEASE, claim=claim))
    return [
        (Job(row.id, row.task, row.queue, row.attempt, row.max_attempts, row.crashes, row.token, row.key,
             row.created_at, None, row.key_seed),
         Lease(row.id, row.token, claim, LEASE.total_seconds(), 0.0))
        for row in sorted(rows)
    ]  # fmt: skip


def keys(store: Store) -> dict[int, str]:
    """The key that each job due would send to the world outside."""
    return {job.id: job.idempotency_key("charge") for job, _ in claimed(store)}


def the_one(store: Store) -> tuple[str, Lease]:
    ((job, lease),) = claimed(store)
    return job.idempotency_key("charge"), lease


def _reaped(store: Store, clock: Clock, lease: Lease) -> None:
    """Its worker is gone, and the round comes after the lease has run out."""
    clock.advance(minutes=5)
    store.run(calls.round_(SECOND))
    clock.advance(minutes=5)
    assert store.run(calls.reap())


def _replayed(store: Store, clock: Clock, lease: Lease) -> None:
    store.run(calls.bury(lease, "no more"))
    store.run(calls.replay(lease.job_id))


def _replayed_with_others(store: Store, clock: Clock, lease: Lease) -> None:
    store.run(calls.bury(lease, "no more"))
    store.run(calls.replay_many())


def _retried_now(store: Store, clock: Clock, lease: Lease) -> None:
    store.run(calls.fail(lease, "boom", SECOND * 3600))
    store.run(calls.retry_now(lease.job_id))


WAYS: dict[str, Callable[[Store, Clock, Lease], Any]] = {
    "fail": lambda store, clock, lease: store.run(calls.fail(lease, "boom", NOW)),
    "fail_many": lambda store, clock, lease: store.run(calls.fail_many([lease], ["boom"], [NOW])),
    "crash": lambda store, clock, lease: store.run(calls.crash(lease, "died", "SIGSEGV", alone=True)),
    "snooze": lambda store, clock, lease: store.run(calls.snooze(lease, SECOND)),
    "release": lambda store, clock, lease: store.run(calls.release(lease)),
    "reap": _reaped,
    "replay": _replayed,
    "replay_many": _replayed_with_others,
    "retry_now": _retried_now,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [{}, {"key": "order-7"}, {"delay": SECOND}], ids=str)
def test_a_job_has_its_key_in_every_attempt_whichever_way_it_comes_back(store, clock, way, options):
    enqueue(store, **options)
    clock.advance(seconds=2)
    store.run(calls.promote())
    first, lease = the_one(store)

    WAYS[way](store, clock, lease)
    clock.advance(hours=1)
    store.run(calls.promote())

    assert the_one(store)[0] == first


def test_a_claim_whose_reply_was_lost_gives_the_same_keys(store):
    enqueue(store)
    claim = uuid4()
    (first,) = store.run(calls.claim(("default",), 1, lease=LEASE, claim=claim))

    (again,) = store.run(calls.claim(("default",), 1, lease=LEASE, claim=claim, resend=True))

    assert again == first
    assert first.key_seed is not None


def test_jobs_of_one_statement_have_keys_of_their_own(store):
    ids = store.run(calls.enqueue_many([new_job() for _ in range(500)]))

    made = keys(store)

    assert sorted(made) == sorted(ids)
    assert len(set(made.values())) == 500


def test_ids_that_begin_again_bring_other_keys_in_the_same_microsecond(store, db):
    """What a lossy failover leaves, with clocks that show the moment of the past once more."""
    db.execute(
        "create or replace function faultline.now() returns timestamptz language sql volatile"
        " as $$ select timestamptz '2026-01-01 12:00+00' $$"
    )
    histories = []
    for _ in range(2):
        db.execute("truncate faultline.active; alter sequence faultline.places restart")
        enqueue(store)
        enqueue(store, key="order-7")
        store.run(calls.enqueue_many([new_job() for _ in range(3)]))
        histories.append(keys(store))
        db.execute("truncate faultline.keys")

    assert list(histories[0]) == list(histories[1])
    assert not set(histories[0].values()) & set(histories[1].values())


def test_a_producer_that_sets_the_seed_of_random_gets_no_key_again(store, db):
    for _ in range(2):
        db.execute("select setseed(0.5)")
        db.execute("select faultline.enqueue('test_task')")

    seeds = db.execute("select key_seed from faultline.active").fetchall()

    assert len(set(seeds)) == 2


def test_two_databases_of_one_template_have_other_keys_for_the_same_ids(server, template):
    with _database(server, template) as one, _database(server, template) as other:
        for store in (one, other):
            enqueue(store)
        here, there = keys(one), keys(other)

    assert list(here) == list(there) == [1]
    assert here != there


def test_a_key_goes_through_dump_and_restore_and_new_jobs_of_both_have_others(server, store, tmp_path):
    """Ids of the two databases go on from the same number: staging must not send production's keys."""
    retried = enqueue(store)
    sent, lease = the_one(store)
    store.run(calls.fail(lease, "boom", NOW))
    buried = enqueue(store)
    sent_by_buried, lease = the_one(store)
    store.run(calls.bury(lease, "no more"))
    kept = enqueue(store)

    with _restored(server, store.dsn, tmp_path) as copy:
        of_both = []
        for each in (store, copy):
            each.run(calls.promote())
            each.run(calls.replay(buried))
            new = enqueue(each)
            made = keys(each)
            assert (made[retried], made[buried]) == (sent, sent_by_buried)
            of_both.append((new, made[new], made[kept]))

    (new, key, kept_key), (new_there, key_there, kept_there) = of_both
    assert kept_key == kept_there
    assert new == new_there
    assert key != key_there


@pytest.mark.parametrize("name", NAMES)
def test_a_key_is_a_uuid_whatever_the_effect_is_called(store, name):
    """Providers cut, refuse or log keys: 36 letters, digits and dashes go through every one we know of."""
    enqueue(store)
    ((job, _),) = claimed(store)

    key = job.idempotency_key(name)

    assert str(UUID(key)) == key
    assert str(job.id) != key


@contextmanager
def _database(server: Server, template: str | None) -> Iterator[Store]:
    name = f"test_{secrets.token_hex(6)}"
    server.create_database(name, template)
    store = Store(server.dsn(name))
    try:
        yield store
    finally:
        store.close()
        server.drop_database(name)


@contextmanager
def _restored(server: Server, dsn: str, folder: Path) -> Iterator[Store]:
    """A second database, restored from a dump of the first by PostgreSQL's own programs."""
    file = folder / "dump"
    programs = find_binaries()
    with _database(server, None) as copy:
        with psycopg.connect(dsn) as conn:
            if programs.major < conn.info.server_version // 10000:
                pytest.skip(f"pg_dump {programs.version} dumps no newer server")
        subprocess.run([programs.program("pg_dump"), "--format=custom", f"--file={file}", dsn], check=True)
        subprocess.run([programs.program("pg_restore"), f"--dbname={copy.dsn}", str(file)], check=True)
        yield copy
