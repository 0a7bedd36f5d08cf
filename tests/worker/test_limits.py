"""Limits of tasks: workers declare them, keep to them, and go on as soon as there is room."""

import asyncio
import json
import logging
from collections import Counter
from datetime import timedelta

import pytest

from faultline import Faultline, Limit
from faultline.errors import BadName, ConfigError, OutOfBounds
from faultline.store import calls
from faultline.task import spec_of
from tests.support import enqueue, new_job, state_of
from tests.worker.harness import eventually, quick, working


def ended(store, jobs):
    return {state_of(store, job) for job in jobs} == {"succeeded"}


def put(store, *tenants):
    return store.run(
        calls.enqueue_many([new_job("charge", json.dumps({"tenant": each})) for each in tenants])
    )


def test_a_worker_keeps_to_the_limit_that_its_task_declares(database, store):
    """Also for jobs that were there before, and with more runners than slots."""
    at_once: Counter[str] = Counter()
    most: dict[str, int] = {}

    async def charge(tenant: str) -> None:
        at_once[tenant] += 1
        most[tenant] = max(most.get(tenant, 0), at_once[tenant])
        await asyncio.sleep(0.002)
        at_once[tenant] -= 1

    before = put(store, *"aaab")
    with working(database, spec_of(charge, limit=Limit(per_key=2, key="tenant")), config=quick(jobs_max=10)):
        eventually(lambda: ended(store, before))
        later = put(store, *"aaaaaaaabbbb")
        eventually(lambda: ended(store, later))

    assert most == {"a": 2, "b": 2}
    assert [limit.name for limit in store.run(calls.list_limits())] == ["charge"]


def test_jobs_of_one_key_run_in_their_order(database, store):
    order = []

    async def charge(tenant: str, n: int) -> None:
        order.append((tenant, n))

    with working(database, spec_of(charge, limit=Limit(per_key=1, key="tenant")), config=quick(jobs_max=8)):
        jobs = store.run(
            calls.enqueue_many(
                [new_job("charge", json.dumps({"tenant": t, "n": n})) for n in range(20) for t in "ab"]
            )
        )
        eventually(lambda: ended(store, jobs))

    assert [n for tenant, n in order if tenant == "a"] == [*range(20)]
    assert [n for tenant, n in order if tenant == "b"] == [*range(20)]


def test_a_full_key_goes_on_as_soon_as_its_job_ends(database, store):
    """No watchdog sweeps here, and the worker polls once an hour: the end of its own job wakes it."""

    async def charge(tenant: str) -> None:
        await asyncio.sleep(0.01)

    limited = spec_of(charge, limit=Limit(per_key=1, key="tenant"))
    config = quick(idle_poll_every=timedelta(hours=1), poll_every=timedelta(hours=1))
    with working(database, limited, config=config, watchdog=False):
        jobs = put(store, *["a"] * 20)
        eventually(lambda: ended(store, jobs))


def test_an_idle_worker_is_woken_for_the_next_token(database, store):
    """It listens, so it polls every ten seconds only."""

    async def charge() -> None: ...

    limited = spec_of(charge, limit=Limit(rate="20/s", burst=1))
    config = quick(idle_poll_every=timedelta(hours=1), poll_every=timedelta(hours=1))
    with working(database, limited, config=config):
        jobs = [enqueue(store, task="charge") for _ in range(5)]
        eventually(lambda: ended(store, jobs))


def test_a_limit_that_is_raised_wakes_idle_workers(database, store):
    async def charge(tenant: str) -> None: ...

    store.run(calls.set_limit("charge", Limit(rate=0.0001, burst=1)))
    store.run(calls.limit_task("charge", "charge"))
    with working(database, charge):
        jobs = put(store, *"abc")
        eventually(lambda: state_of(store, jobs[0]) == "succeeded")
        store.run(calls.set_limit("charge", Limit(total=1)))
        eventually(lambda: ended(store, jobs))


def test_an_app_tells_its_limits_to_the_database(database, store, caplog):
    caplog.set_level(logging.INFO)
    app = Faultline(database)
    app.limit(Limit(name="billing", total=100))

    @app.task(queue="billing", limit=Limit(per_key=5, key="order.tenant", parent="billing"))
    def charge(order: dict[str, str]) -> None: ...

    @app.task(queue="billing", limit="billing")
    def refund() -> None: ...

    charge.enqueue(order={"tenant": "a"})

    assert app.declare_limits() == 1
    assert app.declare_limits() == 0
    with pytest.raises(OutOfBounds, match=r"have no order\.tenant"):
        charge.enqueue(order={})
    charge.using(limit_key="b").enqueue(order={})
    refund.using(limit="charge", limit_key="a").enqueue()
    app.close()
    limits = {limit.name: limit for limit in store.run(calls.list_limits())}
    assert (limits["charge"].parent, limits["charge"].per_key, limits["charge"].waiting) == ("billing", 5, 3)
    assert limits["billing"].tasks == ["refund"]


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        ({"per_key": 0, "key": "a"}, OutOfBounds), ({"total": -1}, OutOfBounds),
        ({"total": 2.5}, OutOfBounds),
        ({"total": True}, OutOfBounds), ({"rate": "0/s"}, OutOfBounds),
        ({"rate": "9999999/s"}, OutOfBounds),
        ({"rate": "fast"}, OutOfBounds), ({"rate": "5/fortnight"}, OutOfBounds),
        ({"rate": float("nan")}, OutOfBounds),
        ({"rate": 5, "burst": 0}, OutOfBounds), ({"burst": 5}, ConfigError), ({"per_key": 5}, ConfigError),
        ({"per_key": 5, "key": ""}, BadName), ({"per_key": 5, "key": "a..b"}, BadName),
        ({"total": 5, "on_retry": "block"}, ConfigError),
        ({"per_key": 1, "key": "a", "on_retry": "wait"}, OutOfBounds),
        ({"total": 5, "name": "a b"}, BadName), ({"total": 5, "name": "a", "parent": "a"}, ConfigError),
    ],
)  # fmt: skip
def test_bounds_that_make_no_sense_are_refused_where_they_are_written(bounds, error):
    with pytest.raises(error):
        Limit(**bounds)


def test_a_key_that_the_handler_does_not_take_is_refused_where_it_is_written():
    def charge(tenant: str) -> None: ...

    with pytest.raises(ConfigError, match=r"counts by customer, .* it takes tenant"):
        spec_of(charge, limit=Limit(per_key=1, key="customer"))
    with pytest.raises(ConfigError, match="limit is a Limit or the name of one"):
        spec_of(charge, limit=5)  # type: ignore[arg-type]


def test_one_name_has_one_meaning(database):
    app = Faultline(database)

    @app.task(limit=Limit(name="api", total=1))
    def one() -> None: ...

    @app.task(limit=Limit(name="api", total=2))
    def two() -> None: ...

    with pytest.raises(ConfigError, match="limit api has other bounds elsewhere"):
        app.declare_limits()
    with pytest.raises(ConfigError, match="has a name"):
        app.limit(Limit(total=1))
