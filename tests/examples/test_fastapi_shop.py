"""The order service, its workers killed and frozen in mid-job: no order is charged twice or lost."""

import base64
import json
import re
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.examples.programs import LEASE, all_wait, is_sound, stalled
from tests.worker.harness import eventually, rows

AT_ONCE = 4

PLACES = {
    "at the provider": "lock table provider.charges in share row exclusive mode",
    "in its transaction": "select from shop.orders for update",
}
"""What holds a job up where, so that its worker is killed or frozen there."""

COUNTS = {
    "orders shipped": "select count(*) from shop.orders where state = 'shipped'",
    "payments": "select count(*) from shop.payments",
    "orders with a payment": "select count(distinct order_id) from shop.payments",
    "shipments": "select count(*) from shop.shipments",
    "orders with a shipment": "select count(distinct order_id) from shop.shipments",
    "charges at the provider": "select count(*) from provider.charges",
    "jobs that succeeded": "select count(*) / 2.0 from faultline.ledger where outcome = 'succeeded'",
}


class Shop:
    """The service over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url

    def post(self, path: str, document: object) -> Any:
        body = json.dumps(document).encode()
        told = {"content-type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, body, told)) as answer:
            return json.load(answer)

    def order(self, number: int = 1) -> list[int]:
        """Place orders; gives their ids."""
        return [self.post("/orders", {"amount": 120})["order_id"] for _ in range(number)]


@pytest.fixture
def serve(start):
    """Start the service, with a worker inside where that is wanted."""

    def serve(**environment: str) -> Shop:
        web = start("web", "-m", "uvicorn", "fastapi_shop.web:web", "--port", "0", **environment)
        told = eventually(lambda: re.search(r"running on (\S+)", web.log.read_text()))
        return Shop(told[1])

    return serve


@pytest.fixture
def work(start):
    """Start a worker of the shop."""

    def work(name: str):
        options = ["--name", name, "--lease", LEASE, "--concurrency", str(AT_ONCE)]
        return start(name, "-m", "faultline", "worker", "fastapi_shop.jobs:app", *options)

    return work


def counts(dsn: str) -> dict[str, int]:
    return {name: rows(dsn, sql)[0][0] for name, sql in COUNTS.items()}


def expired(dsn: str) -> int:
    return int(rows(dsn, "select count(*) from faultline.ledger where outcome = 'expired'")[0][0])


def shipped(dsn: str, orders: int) -> None:
    eventually(lambda: counts(dsn)["orders shipped"] == orders)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("lock", PLACES.values(), ids=PLACES)
def test_a_killed_worker_loses_no_order_and_charges_none_twice(database, serve, work, lock):
    """Killed while it waits for the provider, or inside the transaction that completes the job."""
    shop = serve()
    shop.order(AT_ONCE)
    with stalled(database, lock):
        worker = work("a")
        all_wait(database, AT_ONCE)
        worker.kill()
    shop.order(2)
    other = work("b")

    shipped(database, AT_ONCE + 2)
    assert other.leave() == 0
    assert counts(database) == dict.fromkeys(COUNTS, AT_ONCE + 2)
    assert expired(database) == AT_ONCE
    assert is_sound(database)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("lock", PLACES.values(), ids=PLACES)
def test_a_frozen_worker_that_wakes_charges_no_order_twice(database, serve, work, lock):
    """Frozen until its leases have run out and another has done its work; then it wakes and goes on."""
    shop = serve()
    shop.order(AT_ONCE)
    with stalled(database, lock):
        worker = work("a")
        all_wait(database, AT_ONCE)
        worker.freeze()
    other = work("b")
    shipped(database, AT_ONCE)

    worker.wake()
    shop.order(2)
    shipped(database, AT_ONCE + 2)

    assert worker.leave() == other.leave() == 0
    assert counts(database) == dict.fromkeys(COUNTS, AT_ONCE + 2)
    assert expired(database) == AT_ONCE
    assert is_sound(database)


@pytest.mark.timeout(120)
def test_a_small_shop_works_in_its_web_process_and_shows_its_jobs_to_operators(database, serve):
    shop = serve(SHOP_WORKER="2", SHOP_OPERATOR_PASSWORD="secret")
    shop.order(2)
    shipped(database, 2)

    asked = urllib.request.Request(f"{shop.url}/faultline/api/v1/jobs?queue=orders")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(asked)
    asked.add_header("authorization", "Basic " + base64.b64encode(b"ada:secret").decode())
    with urllib.request.urlopen(asked) as answer:
        jobs = json.load(answer)["jobs"]

    assert sorted(job["task"] for job in jobs) == ["charge", "charge", "ship", "ship"]
