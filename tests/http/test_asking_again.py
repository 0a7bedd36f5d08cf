"""A client that got no answer and asks again is told what is durable, and nothing earlier."""

import httpx2
import pytest

from tests.http.serving import serving
from tests.promises.no_standby import PATIENCE_SECONDS, a_cluster

JOB = {"task": "charge", "args": {"order": 7}, "key": "order-7"}


@pytest.fixture(scope="module")
def cluster():
    with a_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster):
    with serving(cluster.dsn) as service:
        client = service.client(service.key("admin"))
        client.timeout = PATIENCE_SECONDS
        client.post("/api/v1/jobs", json={"task": "charge"}).raise_for_status()
        cluster.wait_until_the_key_is_noted()
        yield client


def test_a_submit_that_is_repeated_with_its_key_is_answered_once_a_standby_has_it(cluster, client):
    with cluster.standby_away():
        first = cluster.start(lambda: client.post("/api/v1/jobs", json=JOB))
        cluster.check_that_it_waits(first)
        cluster.cancel_until_done(first)  # the row is here, and nowhere else
        again = cluster.start(lambda: client.post("/api/v1/jobs", json=JOB))
        cluster.check_that_it_waits(again)

    answer = again.result(PATIENCE_SECONDS)
    assert (answer.status_code, answer.json()["id"]) == (200, first.result().json()["id"])


def test_a_client_that_hung_up_is_not_told_earlier(cluster, client):
    job = {**JOB, "key": "order-8"}
    with cluster.standby_away():
        with pytest.raises(httpx2.TimeoutException):
            client.post("/api/v1/jobs", json=job, timeout=1)
        cluster.cancel_waits()  # whatever became of the first: if it was never sent, this one writes
        again = cluster.start(lambda: client.post("/api/v1/jobs", json=job))
        cluster.check_that_it_waits(again)

    assert again.result(PATIENCE_SECONDS).status_code in (200, 201)


def test_an_end_that_was_waited_for_is_told_once_a_standby_has_it(cluster, client):
    job = client.post("/api/v1/jobs", json={"task": "charge"}).json()["id"]
    client.post(f"/api/v1/jobs/{job}/cancel", json={}).raise_for_status()

    with cluster.standby_away():
        waiting = cluster.start(lambda: client.get(f"/api/v1/jobs/{job}/wait"))
        cluster.check_that_it_waits(waiting)
        assert client.get(f"/api/v1/jobs/{job}").json()["state"] == "cancelled"  # a look is a look

    assert waiting.result(PATIENCE_SECONDS).json()["state"] == "cancelled"
