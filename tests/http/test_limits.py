"""Limits over HTTP: seen and set, by keys without queues."""

import pytest

from faultline.store import calls
from tests.http.serving import code_of

WHERE = "/api/v1/limits"


def test_a_limit_is_set_seen_and_holds(admin, submit):
    set_to = {"per_key": 1, "rate": 100, "reason": "the bank is slow"}
    made = admin.put(f"{WHERE}/bank", json=set_to)

    assert made.status_code == 200, made.text
    assert (made.json()["per_key"], made.json()["burst"], made.json()["total"]) == (1, 100, None)
    assert "bank" in [limit["name"] for limit in admin.get(WHERE).json()]
    assert admin.get(f"{WHERE}/bank").json()["keys"] == []
    acts = admin.get("/api/v1/acts").json()["acts"]
    assert (acts[0]["verb"], acts[0]["reason"]) == ("set_limit", "the bank is slow")


def test_a_limit_that_is_not_there_is_a_problem_with_a_better_name(admin):
    admin.put(f"{WHERE}/billing", json={"total": 5})
    answer = admin.get(f"{WHERE}/biling")

    assert (answer.status_code, code_of(answer)) == (404, "not_found")
    assert "did you mean billing" in answer.json()["detail"]


@pytest.mark.parametrize(
    "bounds",
    [
        {"total": 0}, {"per_key": -1}, {"rate": 0}, {"rate": 1e9}, {"burst": 5}, {"totl": 5},
        {"parent": "bank2"},
        {"total": 5, "on_retry": "block"}, {"total": 5, "parent": "missing"},
    ],
)  # fmt: skip
def test_bounds_that_make_no_sense_are_refused(admin, bounds):
    assert admin.put(f"{WHERE}/bank2", json=bounds).status_code == 422


def test_a_key_of_some_queues_neither_sees_nor_sets_limits(service):
    client = service.client(service.key("operate", "read", queues=["mail"]))

    assert client.get(WHERE).status_code == 403
    assert client.put(f"{WHERE}/bank", json={"total": 1}).status_code == 403
    assert client.get(f"{WHERE}/bank").status_code == 403


def test_a_job_without_the_key_of_its_limit_is_refused_by_name(admin, store):
    admin.put(f"{WHERE}/per-tenant", json={"per_key": 1})
    store.run(calls.limit_task("bill", "per-tenant", ["tenant"]))

    answer = admin.post("/api/v1/jobs", json={"task": "bill", "args": {}})

    assert answer.status_code == 422
    assert "have no tenant" in answer.json()["detail"]
    assert admin.post("/api/v1/jobs", json={"task": "bill", "args": {"tenant": "a"}}).status_code == 201
