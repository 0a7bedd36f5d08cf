"""Case D17: a copy of an hour ago is put in the place of the database; its numbers are issued again."""

import secrets

import pytest

from faultline.errors import LeaseLost
from faultline.store import calls
from faultline.store.pool import Store
from tests.conftest import a_database
from tests.servers import Server
from tests.support import claim_one, enqueue, outcomes


def test_d17_a_worker_of_the_future_cannot_settle_what_the_past_has_claimed(server: Server, template: str):
    """Same server, same timeline, same token: only the random claim tells the two leases apart."""
    copy = f"test_{secrets.token_hex(6)}"
    now = a_database(server, template)
    store = Store(next(now))
    job = enqueue(store)
    name = store.dsn
    store.close()
    server.create_database(copy, _name(name))
    store = Store(name)
    of_the_future = claim_one(store)
    store.close()

    past = Store(server.dsn(copy))
    of_the_past = claim_one(past)
    assert (of_the_past.job_id, of_the_past.token) == (of_the_future.job_id, of_the_future.token)
    with pytest.raises(LeaseLost):
        past.run(calls.complete(of_the_future, "null"))

    past.run(calls.complete(of_the_past, "null"))
    assert outcomes(past, job) == ["succeeded"]
    past.close()
    server.drop_database(copy)
    next(now, None)


def _name(dsn: str) -> str:
    from psycopg.conninfo import conninfo_to_dict

    return str(conninfo_to_dict(dsn)["dbname"])
