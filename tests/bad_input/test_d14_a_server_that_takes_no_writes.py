"""D14: a read-only role, and a real standby: refused with the reason before anything is tried."""

import asyncio
import secrets
import time
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from faultline import errors
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.migrate import migrate
from faultline.store.pool import AsyncStore, Store
from tests.promises.standby import a_primary, a_standby_of
from tests.support import LEASE, claim_one, enqueue, new_job


def refused_by_store(dsn: str) -> str:
    store = Store(dsn)
    try:
        with pytest.raises(errors.ReadOnlyServer, match="connect to the primary") as caught:
            enqueue(store)
    finally:
        store.close()
    return str(caught.value)


def refused_by_async_store(dsn: str) -> str:
    async def once() -> str:
        store = AsyncStore(dsn)
        try:
            with pytest.raises(errors.ReadOnlyServer, match="connect to the primary") as caught:
                await store.run(calls.enqueue(new_job()))
        finally:
            await store.close()
        return str(caught.value)

    return asyncio.run(once())


@pytest.mark.parametrize("refused", [refused_by_store, refused_by_async_store])
def test_d14_a_read_only_role_is_refused_at_once(database, db, nothing_changes, refused):
    role = f"reader_{secrets.token_hex(4)}"
    db.execute(f"create role {role} superuser login")
    db.execute(f"alter role {role} set default_transaction_read_only = on")
    began = time.monotonic()
    try:
        with nothing_changes():
            said = refused(make_conninfo(database, user=role))
    finally:
        db.execute(f"drop role {role}")

    assert "\n" not in said
    assert time.monotonic() - began < 15  # and not after the half minute for which an outage is waited out


def test_d14_a_session_that_turns_read_only_is_refused_by_each_write(store, nothing_changes):
    """As after a failover behind a proxy: the connection is there, and takes no more writes."""
    enqueue(store)
    lease = claim_one(store)
    writes = [
        calls.enqueue(new_job()),
        calls.complete(lease, "null"),
        calls.reap(),
        calls.cancel(lease.job_id),
    ]

    with nothing_changes(), store.connection() as conn:
        conn.execute("set default_transaction_read_only = on")
        for call in writes:
            with pytest.raises(errors.ReadOnlyServer, match="nothing was written; connect to the primary"):
                store.run_in(conn, call)
        conn.execute("set default_transaction_read_only = off")


def test_d14_a_standby_is_refused_by_every_door():
    with a_primary() as primary, a_standby_of(primary) as standby:
        migrate(primary.dsn())
        store = Store(primary.dsn())
        enqueue(store)
        lease = claim_one(store)
        store.close()
        standby.catch_up(primary.dsn())

        said = [refused_by_store(standby.dsn()), refused_by_async_store(standby.dsn())]
        with pytest.raises(errors.ReadOnlyServer, match="connect to the primary") as caught:
            migrate(standby.dsn())
        said.append(str(caught.value))
        check_that_nothing_is_answered_from_a_standby(standby.dsn(), lease)

        assert not [line for line in said if "\n" in line]


def check_that_nothing_is_answered_from_a_standby(dsn, lease):
    """Rule 8: an outcome is read under the row's lock, which a standby cannot give: so it does not guess."""

    claim = calls.claim(["default"], 1, lease=LEASE, claim=lease.claim)
    asked: list[Call[Any]] = [calls.outcome(lease), calls.fence(lease), claim]
    with psycopg.connect(dsn, autocommit=True) as conn:
        for call in asked:
            with pytest.raises(errors.ReadOnlyServer):
                Store.run_in(conn, call)
        assert Store.run_in(conn, calls.get_confirmed(lease.job_id)) is not None  # a look, as it stands there
