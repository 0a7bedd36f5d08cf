"""Schedules over HTTP: read, set, acted on; by scope and queue, with acts noted."""

import pytest

from faultline.store import calls
from tests.http.serving import code_of

SCHEDULES = "/api/v1/schedules"


@pytest.fixture
def name(admin, queue):
    """A schedule of this test's own, in its own queue."""
    answer = admin.put(
        f"{SCHEDULES}/s-{queue}",
        json={"task": "report", "cron": "0 * * * *", "queue": queue, "args": {"days": 30}},
    )
    assert answer.status_code == 200, answer.text
    return f"s-{queue}"


def test_a_schedule_is_set_read_and_deleted(admin, name, queue):
    view = admin.get(f"{SCHEDULES}/{name}").json()
    assert (view["when"], view["queue"], view["args"], view["state"]) == (
        "0 * * * *", queue, '{"days": 30}', "active",
    )  # fmt: skip
    listed = {one["name"]: one for one in admin.get(SCHEDULES, params={"after": "s-"}).json()}
    assert "args" not in listed[name]
    assert len(admin.get(f"{SCHEDULES}/{name}/next", params={"count": 3}).json()) == 3
    changed = admin.put(f"{SCHEDULES}/{name}", json={"task": "report", "every_seconds": 300, "queue": queue})
    assert changed.json()["when"] == "every 5m"
    assert admin.request("DELETE", f"{SCHEDULES}/{name}", json={}).status_code == 204
    assert (admin.get(f"{SCHEDULES}/{name}").status_code) == 404


def test_it_is_paused_resumed_and_triggered_and_the_acts_are_noted(service, admin, name, queue, store):
    ops = service.client(service.key("operate", name=f"ops-{queue}"))
    assert ops.post(f"{SCHEDULES}/{name}/pause", json={"reason": "disk full"}).json()["state"] == "paused"
    paused = ops.post(f"{SCHEDULES}/{name}/resume", json={}).json()
    assert (paused["state"], paused["args"]) == ("active", None)  # it may not read
    made = ops.post(f"{SCHEDULES}/{name}/trigger", json={}).json()
    assert made["queue"] == queue
    made_for = admin.get(f"/api/v1/jobs/{made['job_id']}/occurrence").json()
    assert (made_for["schedule"], made_for["how"], made_for["state"]) == (name, "triggered", "queued")
    (past,) = admin.get(f"{SCHEDULES}/{name}/occurrences").json()
    assert (past["how"], past["job_id"], past["state"]) == ("triggered", made["job_id"], "queued")
    acts = [(act.verb, act.actor.partition(" ")[0], act.reason) for act in store.run(calls.acts(queue=queue))]
    assert acts[:3] == [
        ("trigger_schedule", f"ops-{queue}", None), ("resume_schedule", f"ops-{queue}", None),
        ("pause_schedule", f"ops-{queue}", "disk full"),
    ]  # fmt: skip


def test_a_backfill_is_previewed_and_done_with_the_count_confirmed(admin, name):
    wish = {"since": "2026-07-01T00:00:00Z", "until": "2026-07-01T05:00:00Z"}
    seen = admin.post(f"{SCHEDULES}/{name}/backfill/preview", json=wish).json()
    assert [one["is_new"] for one in seen] == [True] * 5
    stale = admin.post(f"{SCHEDULES}/{name}/backfill", json={**wish, "confirm": 4})
    assert (stale.status_code, code_of(stale)) == (409, "count_changed")
    made = admin.post(f"{SCHEDULES}/{name}/backfill", json={**wish, "confirm": 5}).json()
    assert all(one["job_id"] for one in made)
    assert admin.post(f"{SCHEDULES}/{name}/backfill", json={**wish, "confirm": 0}).status_code == 200


@pytest.mark.parametrize(
    "since", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
@pytest.mark.parametrize("end", ["since", "until"])
def test_a_backfill_from_the_edge_of_time_is_refused_by_name(admin, name, since, end):
    wish = {"since": "2026-07-01T00:00:00Z", end: since}
    for path, more in (("backfill/preview", {}), ("backfill", {"confirm": 0})):
        answer = admin.post(f"{SCHEDULES}/{name}/{path}", json={**wish, **more})
        assert (answer.status_code, "2000 to 2199" in answer.text) == (422, True), answer.text


def test_a_stored_expression_that_never_occurs_has_no_next_times(admin, store, queue):
    """SQL takes any text: a watchdog judges it."""
    never = {"name": f"never-{queue}", "task": "report", "queue": queue}
    store.run(calls.set_schedule({**never, "cron": "* 2 * 3 7L", "time_zone": "Europe/Berlin"}))
    told = admin.get(f"{SCHEDULES}/never-{queue}/next")
    assert (told.status_code, told.json()) == (200, [])


def test_a_key_for_other_queues_sees_no_schedule_of_this_one(service, admin, name, queue):
    other = service.client(service.key("read", "operate", "enqueue", queues=["elsewhere"]))
    assert name not in {one["name"] for one in other.get(SCHEDULES).json()}
    for path in ("", "/next", "/occurrences"):
        assert other.get(f"{SCHEDULES}/{name}{path}").status_code == 404
    for verb in ("pause", "resume", "trigger"):
        assert other.post(f"{SCHEDULES}/{name}/{verb}", json={}).status_code == 404
    assert other.request("DELETE", f"{SCHEDULES}/{name}", json={}).status_code == 404
    for wanted in (queue, "elsewhere"):
        taken = other.put(f"{SCHEDULES}/{name}", json={"task": "t", "cron": "@daily", "queue": wanted})
        assert (taken.status_code, code_of(taken)) == (403, "not_allowed")
    only_operates = service.client(service.key("operate"))
    made = only_operates.put(f"{SCHEDULES}/another", json={"task": "t", "cron": "@daily"})
    assert (made.status_code, code_of(made)) == (403, "not_allowed")


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"cron": "0 25 * * *"}, "wrong at '25'"),
        ({"cron": "0 0 30 2 *"}, "never occurs"),
        ({"cron": "* 2 * 3 7L", "time_zone": "Europe/Berlin"}, "never occurs in Europe/Berlin"),
        ({"cron": "@daily", "time_zone": "Berlin"}, "did you mean Europe/Berlin"),
        ({}, "one of cron, every_seconds and at"),
        ({"cron": "@daily", "every_seconds": 5}, "one of cron, every_seconds and at"),
        ({"every_seconds": 0.1}, "every_seconds"),
        ({"at": "2001-01-01T00:00:00Z"}, "has passed"),
        ({"at": "2030-01-01T00:00:00"}, "timezone"),
        ({"cron": "@daily", "overlap": "alow"}, "did you mean allow"),
        ({"cron": "@daily", "tz": "UTC"}, "tz"),
    ],
)
def test_bad_input_is_refused_by_name(admin, wanted, said):
    answer = admin.put(f"{SCHEDULES}/bad", json={"task": "report", **wanted})
    assert (answer.status_code, said in answer.json()["detail"]) == (422, True), answer.text
    assert admin.get(f"{SCHEDULES}/bad").status_code == 404


def test_a_mistyped_name_is_told_with_the_near_one(admin, name):
    answer = admin.get(f"{SCHEDULES}/{name[:-1]}")
    assert (answer.status_code, f"did you mean {name}" in answer.json()["detail"]) == (404, True)
