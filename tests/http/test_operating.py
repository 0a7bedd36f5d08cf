"""What an operator does over HTTP is done, and noted with who and why."""

from uuid import uuid4

import pytest

from faultline.store import calls
from tests.http.serving import code_of
from tests.support import LEASE, NOW, claim_one, state_of

JOBS = "/api/v1/jobs"


@pytest.fixture(scope="module")
def operator(service):
    return service.client(service.key("operate", "read", name="ops"))


def acts_on(store, job_id):
    return [(act.verb, act.actor.partition(" ")[0], act.reason) for act in store.run(calls.acts(job_id))]


def dead_job(store, submit, queue):
    job_id = submit(max_attempts=1)
    store.run(calls.fail(claim_one(store, queues=(queue,)), "boom", NOW))
    assert state_of(store, job_id) == "dead"
    return job_id


def test_a_cancelled_job_is_cancelled_and_the_act_is_noted(operator, submit, store):
    job_id = submit()

    answer = operator.post(f"{JOBS}/{job_id}/cancel", json={"reason": "a customer asked"})

    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    assert acts_on(store, job_id) == [("cancel", "ops", "a customer asked")]


def test_a_job_for_later_is_retried_now(operator, submit, store, queue):
    job_id = submit(delay_seconds=3600)

    assert operator.post(f"{JOBS}/{job_id}/retry", json={}).status_code == 200
    assert claim_one(store, queues=(queue,)).job_id == job_id


def test_a_dead_job_is_replayed(operator, submit, store, queue):
    job_id = dead_job(store, submit, queue)

    assert operator.post(f"{JOBS}/{job_id}/replay", json={}).json()["state"] == "queued"
    assert acts_on(store, job_id)[0][:2] == ("replay", "ops")


def test_what_the_state_does_not_allow_is_refused_with_the_state(operator, submit):
    answer = operator.post(f"{JOBS}/{submit()}/replay", json={})

    assert (answer.status_code, code_of(answer)) == (409, "wrong_state")
    assert "queued" in answer.json()["detail"]


def test_a_bulk_act_is_counted_first_and_done_with_the_count_confirmed(operator, submit, store, queue):
    made = [submit() for _ in range(5)]
    wish = {"act": "cancel", "queue": queue}
    count = operator.post(f"{JOBS}/bulk/preview", json=wish).json()
    made.append(submit())
    stale = operator.post(f"{JOBS}/bulk", json={**wish, "confirm": count["count"]})
    done = operator.post(f"{JOBS}/bulk", json={**wish, "confirm": 6, "reason": "a bad deploy"})

    assert count == {"count": 5, "capped": False}
    assert (stale.status_code, code_of(stale)) == (409, "count_changed")
    assert done.json() == {"done": 6, "refused": 0}
    assert {state_of(store, job_id) for job_id in made} == {"cancelled"}
    assert acts_on(store, made[0]) == [("cancel", "ops", "a bad deploy")]


def test_the_dead_are_replayed_by_filter(operator, submit, store, queue):
    dead = [dead_job(store, submit, queue) for _ in range(3)]
    wish = {"act": "replay", "queue": queue, "task": "charge", "confirm": 3}

    assert operator.post(f"{JOBS}/bulk", json=wish).json() == {"done": 3, "refused": 0}
    assert {state_of(store, job_id) for job_id in dead} == {"queued"}


def test_what_is_refused_for_one_job_does_not_spare_the_others(submit, store, queue):
    ended, waiting = submit(), submit()
    store.run(calls.complete(claim_one(store, queues=(queue,)), None))

    answers = store.run(calls.for_each("cancel", [waiting, ended, 2**40]))

    assert [(answer.id, answer.done) for answer in answers] == [
        (ended, False),
        (waiting, True),
        (2**40, False),
    ]


def test_a_queue_is_paused_resumed_and_told_what_to_keep(operator, submit, store, queue):
    submit()
    where = f"/api/v1/queues/{queue}"

    assert operator.post(f"{where}/pause", json={"reason": "maintenance"}).json()["paused"] is True
    assert store.run(calls.claim([queue], 1, lease=LEASE, claim=uuid4())) == []
    assert operator.post(f"{where}/resume", json={}).json()["paused"] is False
    assert operator.patch(where, json={"keep": "outline"}).json()["keep"] == "outline"
    acts = operator.get("/api/v1/acts", params={"queue": queue}).json()["acts"]
    assert [act["verb"] for act in acts] == ["set_retention", "resume", "pause"]
    assert acts[2]["reason"] == "maintenance"


def test_a_queue_that_is_not_there_is_a_problem(operator):
    answer = operator.post("/api/v1/queues/nowhere/resume", json={})

    assert (answer.status_code, code_of(answer)) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "act"), [("GET", ""), ("POST", "/pause"), ("POST", "/resume"), ("PATCH", "")]
)
def test_a_mistyped_queue_is_named_with_what_it_may_have_meant(operator, submit, queue, method, act):
    submit()
    typed = f"{queue}x"
    wish = {"keep": "outline"} if method == "PATCH" else {}

    answer = operator.request(method, f"/api/v1/queues/{typed}{act}", json=None if method == "GET" else wish)
    problem = answer.json()

    assert (answer.status_code, problem["code"]) == (404, "not_found")
    assert f"there is no queue {typed}" in problem["detail"]
    assert f"did you mean {queue}" in problem["detail"]
    assert ('"new": true' in problem["detail"]) == (act == "/pause" or method == "PATCH")
    assert "GET /api/v1/queues" in problem["what_to_do"]
    assert "id" not in problem["what_to_do"].split()


def test_a_key_is_told_of_no_queue_that_it_is_not_for(service, submit, queue):
    submit()
    mine = f"{queue}-mine"
    client = service.client(service.key("operate", "read", queues=[mine]))

    for typed in (mine, f"{queue}x"):
        for path in (f"/api/v1/queues/{typed}", f"/api/v1/queues/{typed}/resume"):
            answer = client.get(path) if path.endswith(typed) else client.post(path, json={})
            assert f"did you mean {queue}" not in answer.text


def test_a_queue_that_nothing_has_used_is_paused_or_set_only_when_that_is_said(operator, store, queue):
    where = f"/api/v1/queues/{queue}"

    for refused in (
        operator.post(f"{where}/pause", json={}),
        operator.patch(where, json={"keep": "outline"}),
    ):
        assert (refused.status_code, code_of(refused)) == (404, "not_found")
        assert '"new": true' in refused.json()["detail"]
    assert queue not in [known.queue for known in store.run(calls.list_queues())]
    assert operator.post(f"{where}/pause", json={"new": True}).json()["paused"] is True
    assert operator.patch(where, json={"keep": "outline"}).json()["keep"] == "outline"


def test_workers_queues_and_stats_are_there_to_look_at(operator, submit, store, queue):
    submit()
    store.run(calls.worker_started("w1", "host", 1, [queue], 10, "0"))

    assert "w1" in [worker["name"] for worker in operator.get("/api/v1/workers").json()]
    assert operator.get(f"/api/v1/queues/{queue}").json()["due"] == 1
    assert operator.get("/api/v1/stats").json()["due"] >= 1
    assert isinstance(operator.get("/api/v1/ledger").json(), list)


def test_a_method_that_a_path_does_not_take_is_refused_with_those_that_it_takes(admin):
    submit, queue = (admin.put(path, json={}) for path in ("/api/v1/jobs", "/api/v1/queues/billing"))

    assert [answer.status_code for answer in (submit, queue)] == [405, 405]
    assert set(submit.headers["allow"].split(", ")) == {"GET", "POST"}
    assert "GET" in queue.headers["allow"]
    assert queue.json()["detail"].startswith("/api/v1/queues/billing takes ")
