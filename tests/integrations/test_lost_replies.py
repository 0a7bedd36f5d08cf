"""The way of each library to the server is cut around a handler's COMMIT: the rows say what became of it."""

from collections.abc import Iterator

import pytest

from faultline.store import calls
from tests.integrations.carriers import (
    CARRIERS,
    DjangoBindingOnServer,
    PooledAsyncpg,
    RawPsycopg,
    Ways,
    done,
    entered,
)
from tests.integrations.test_carriers import effects, run, write
from tests.support import enqueue, outcomes
from tests.support_proxy import Proxy
from tests.worker.test_provided_transactions import Shop, work_off

COMMIT = "COMMIT"
"""As each of the libraries sends it; our own calls are written small."""

ALIKE = (RawPsycopg, PooledAsyncpg, DjangoBindingOnServer)
"""They commit as others of the list do."""


@pytest.fixture
def proxy(database) -> Iterator[Proxy]:
    with Proxy(database) as proxy:
        yield proxy


@pytest.fixture(params=[kind for kind in CARRIERS if kind not in ALIKE], ids=lambda kind: kind.__name__)
def ways(request, proxy) -> Iterator[Ways]:
    """The handler's own connection goes through the proxy; the worker's do not."""
    ways = request.param(proxy.dsn)
    yield ways
    ways.close()


def committing(ways: Ways, proxy: Proxy, before_the_commit):
    """Write a row and complete the job; cut the way at the commit of that."""

    async def act(job):
        async with entered(ways.begin()) as tx:
            await done(write(ways, job, tx))
            await done(job.complete_in(tx, result="done"))
            before_the_commit(job)

    return act


def test_a_commit_whose_reply_is_lost_is_a_success(database, store, proxy, ways):
    job = enqueue(store, task="write")

    run(database, ways, committing(ways, proxy, lambda job: proxy.cut(COMMIT, "after")))

    assert proxy.cuts == 1
    assert (effects(database), outcomes(store, job)) == (1, ["succeeded"])
    assert store.run(calls.get(job)).result == "done"
    (entry,) = store.run(calls.history(job))
    assert entry.error, "what the library made of it stands beside the success"
    assert store.run(calls.refusals(job)) == []


def test_a_commit_that_never_arrived_is_a_failure(database, store, proxy, ways):
    job = enqueue(store, task="write", max_attempts=1)

    run(database, ways, committing(ways, proxy, lambda job: proxy.cut(COMMIT, "before")))

    assert proxy.cuts == 1
    assert (effects(database), outcomes(store, job)) == (0, ["dead"])


@pytest.mark.parametrize("kind", ["sqlalchemy", "sqlalchemy-asyncpg", "asyncpg", "psycopg", "django"])
def test_an_injected_transaction_whose_reply_is_lost_is_a_success(database, store, proxy, kind):
    shop = Shop(kind, proxy.dsn)
    shop.then = lambda: proxy.cut(COMMIT, "after")
    job = enqueue(store, task="work")

    work_off(database, shop.app)

    assert proxy.cuts == 1
    assert (effects(database), outcomes(store, job)) == (1, ["succeeded"])
