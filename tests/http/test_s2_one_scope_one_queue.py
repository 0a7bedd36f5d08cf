"""S2: a key of one scope, bound to one queue, is told by no route what it may not know."""

import json
import re

import pytest

from faultline.store import calls
from tests.http.serving import serving
from tests.support import NOW, claim_one, enqueue

OWN_ARGS, OTHER_ARGS = "own-args-4711", "other-args-4711"
OWN_ERROR, OWN_RESULT, OWN_KEY = "own-error-4711", "own-result-4711", "own-key-4711"
OTHER = "elsewhere-4711"
OTHER_REASON, OTHER_TASK = "other-reason-4711", "other-task-4711"

PAYLOAD = {OWN_ARGS, OWN_ERROR, OWN_RESULT, OWN_KEY}
ELSEWHERE = {OTHER_ARGS, OTHER, OTHER_REASON, OTHER_TASK}

BODIES = {
    "/jobs": {"task": "t", "queue": "QUEUE"},
    "/jobs/batch": {"jobs": [{"task": "t", "queue": "QUEUE"}]},
    "/jobs/bulk/preview": {"act": "retry"},
    "/jobs/bulk": {"act": "retry", "confirm": 0},
    "/queues/{queue}": {"keep": "full"},
}


@pytest.fixture(scope="module")
def proxied(service, admin):
    with serving(service.dsn, behind_proxy=True) as running:
        yield running


@pytest.fixture
def jobs(store, queue):
    """Jobs of both queues with something secret in each, worked on by one worker of both."""
    other = enqueue(store, queue=OTHER, task=OTHER_TASK, args=json.dumps({"a": OTHER_ARGS}))
    worker = store.run(calls.worker_started(f"both-{other}", "host", 1, [queue, OTHER], 10, "0"))
    store.run(calls.cancel(other, OTHER_REASON))
    done = enqueue(store, queue=queue, args=json.dumps({"a": OWN_ARGS}), key=f"{OWN_KEY}-{other}")
    store.run(calls.complete(claim_one(store, queues=(queue,), worker=worker), json.dumps(OWN_RESULT)))
    waiting = enqueue(store, queue=queue, args=json.dumps({"a": OWN_ARGS}), max_attempts=9)
    store.run(calls.fail(claim_one(store, queues=(queue,), worker=worker), OWN_ERROR, NOW))
    dead = enqueue(store, queue=queue, args=json.dumps({"a": OWN_ARGS}))
    store.run(calls.bury(claim_one(store, queues=(queue,), worker=worker), OWN_ERROR))
    return {"other": other, "done": done, "waiting": waiting, "dead": dead}


def asked(client, jobs, own):
    """Every route, for each of the jobs, with what it takes; the parameters that narrow lists as well."""
    document = client.get("/api/v1/openapi.json").json()
    for path, operations in document["paths"].items():
        if path.endswith(("/events", "openapi.json")) or "drills" in path:
            continue
        for job in jobs.values() if "{job_id}" in path else (0,):
            for queue in (own, OTHER) if "{queue}" in path else ("",):
                filled = path.replace("{job_id}", str(job)).replace("{queue}", queue)
                for method in operations:
                    params = {"seconds": 0} if path.endswith("/wait") else {}
                    yield method.upper(), re.sub(r"^.*?/api/v1", "", path), filled, params
    for job in jobs.values():
        for queue in (None, own, OTHER):
            narrowed = {"job_id": job, **({"queue": queue} if queue else {})}
            yield "GET", "/acts", "/api/v1/acts", narrowed


@pytest.mark.parametrize("scope", ["enqueue", "read", "work", "operate"])
def test_s2_no_route_tells_a_key_of_one_scope_and_queue_too_much(proxied, admin, jobs, queue, scope):
    client = proxied.client(proxied.key(scope, queues=[queue]))
    hidden = ELSEWHERE if scope == "read" else ELSEWHERE | PAYLOAD
    answered = 0
    for method, route, path, params in asked(admin, jobs, queue):
        body = None if method == "GET" else json.dumps(BODIES.get(route, {})).replace("QUEUE", queue).encode()
        answer = client.request(
            method, path, params=params, content=body, headers={"content-type": "application/json"}
        )
        answered += answer.status_code < 300
        # What it named itself it may hear again.
        text = answer.text.replace(path, "").replace(f'"{OTHER}"', "" if OTHER in path else f'"{OTHER}"')
        told = {word for word in hidden if word in text}
        assert not told or (told == {OTHER} and OTHER in path), (method, path, params, answer.text)
        assert answer.status_code < 500, (method, path, answer.text)
    assert answered >= {"enqueue": 2, "read": 15, "work": 0, "operate": 8}[scope]


def test_s2_acts_of_a_job_are_told_by_queue_too(proxied, jobs, queue, admin):
    client = proxied.client(proxied.key("operate", queues=[queue]))

    there = client.get("/api/v1/acts", params={"job_id": jobs["other"], "queue": queue})
    assert (there.status_code, there.json()["acts"]) == (200, [])
    assert client.get("/api/v1/acts", params={"job_id": jobs["other"], "queue": OTHER}).status_code == 403
    assert admin.get("/api/v1/acts", params={"job_id": jobs["other"]}).json()["acts"]


def test_s2_an_operator_that_may_not_read_gets_no_payload(proxied, jobs, queue):
    operate, both = (
        proxied.client(proxied.key(*scopes, queues=[queue])) for scopes in (["operate"], ["operate", "read"])
    )

    for act in ("replay", "retry"):
        bare = operate.post(f"/api/v1/jobs/{jobs['dead']}/{act}", json={})
        assert (bare.status_code, bare.json()["state"]) == (200, "queued")
        assert [bare.json()[name] for name in ("args", "result", "error", "key")] == [None] * 4
    whole = both.post(f"/api/v1/jobs/{jobs['dead']}/cancel", json={})
    assert whole.json()["args"] == {"a": OWN_ARGS}


def test_s2_a_worker_of_two_queues_is_shown_with_the_one_the_key_is_for(proxied, jobs, queue):
    workers = proxied.client(proxied.key("read", queues=[queue])).get("/api/v1/workers").json()

    assert workers
    assert {queue for worker in workers for queue in worker["queues"]} == {queue}


def test_s2_a_key_of_one_queue_sees_its_workers_behind_newer_ones_of_others(
    proxied, store, queue, monkeypatch
):
    """The limit counts the workers that the key may see: others must not push them out."""
    monkeypatch.setattr("faultline.server.http.api_context.PAGE_MAX", 2)
    client = proxied.client(proxied.key("read", queues=[queue]))
    store.run(calls.worker_started("mine", "host", 1, [queue], 10, "0"))
    others = [store.run(calls.worker_started("other", "host", 1, [OTHER], 10, "0")) for _ in range(3)]

    listed = client.get("/api/v1/workers", params={"most": 2}).json()
    stats = client.get("/api/v1/stats").json()
    for other in others:
        store.run(calls.worker_stopped(other))

    assert [worker["name"] for worker in listed] == ["mine"]
    assert (stats["workers"], stats["silent_workers"]) == (1, 0)


def test_s2_a_worker_is_shown_with_the_jobs_it_runs_in_the_keys_queues_only(proxied, admin, store, queue):
    worker = store.run(calls.worker_started("both", "host", 1, [queue, OTHER], 10, "0"))
    for name in (queue, OTHER, OTHER):
        enqueue(store, queue=name)
        claim_one(store, queues=(name,), worker=worker)

    def running(client):
        return [one["running"] for one in client.get("/api/v1/workers").json() if one["id"] == worker]

    assert running(proxied.client(proxied.key("read", queues=[queue]))) == [1]
    assert running(admin) == [3]
