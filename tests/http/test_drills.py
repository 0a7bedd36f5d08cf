"""Drills over HTTP: listed for readers, run for admins, one at a time, with progress and a verdict."""

import asyncio
import sys
import time

import pytest

from faultline.lab.drills.registry import DRILLS
from faultline.server.http import drill_runs
from tests.http.serving import code_of, serving

DRILLS_AT = "/api/v1/drills"


def ended(client, run_id, seconds):
    until = time.monotonic() + seconds
    while (run := client.get(f"{DRILLS_AT}/runs/{run_id}").json())["state"] == "running":
        assert time.monotonic() < until, run
        time.sleep(0.05)
    return run


@pytest.fixture
def play(monkeypatch):
    """Have a drill's process say these lines and end with this code."""

    def play(script):
        async def started(drill, dsn):
            return await asyncio.create_subprocess_exec(
                sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, start_new_session=True
            )

        monkeypatch.setattr(drill_runs, "_started", started)

    return play


def test_a_server_without_the_option_has_no_routes_of_drills(database):
    with serving(database) as plain:
        admin = plain.client(plain.key("admin"))
        answers = [
            admin.get(DRILLS_AT),
            admin.get(f"{DRILLS_AT}/runs"),
            admin.post(f"{DRILLS_AT}/lease-race/runs", json={}),
        ]

        assert [(answer.status_code, code_of(answer)) for answer in answers] == [(404, "no_such_page")] * 3


def test_drills_are_listed_with_what_they_need(service):
    listed = service.client().get(DRILLS_AT).json()

    assert [drill["name"] for drill in listed] == list(DRILLS)


def test_a_drill_tells_its_progress_and_its_verdict(admin, play):
    play(
        "import json\n"
        "print(json.dumps({'event': 'frozen', 'process': 'A'}))\n"
        "print('not json')\n"
        "print(json.dumps({'event': 'verdict', 'kept': True, 'broken': []}))\n"
    )
    started = admin.post(f"{DRILLS_AT}/lease-race/runs", json={})

    assert started.status_code == 202
    run = ended(admin, started.json()["id"], 20)
    assert (run["state"], run["verdict"]) == ("kept", {"kept": True, "broken": []})
    assert [sign["event"] for sign in run["progress"]] == ["frozen", "verdict"]


def test_a_broken_promise_and_a_process_that_fails_are_told_apart(admin, play):
    play(
        "import json, sys\n"
        "print(json.dumps({'event': 'verdict', 'kept': False, 'broken': ['x']}))\n"
        "sys.exit(3)"
    )
    broken = ended(admin, admin.post(f"{DRILLS_AT}/lease-race/runs", json={}).json()["id"], 20)
    play("import sys\nsys.exit(1)")
    failed = ended(admin, admin.post(f"{DRILLS_AT}/lease-race/runs", json={}).json()["id"], 20)

    assert (broken["state"], broken["verdict"]["broken"]) == ("broken", ["x"])
    assert (failed["state"], failed["verdict"]) == ("failed", None)


def test_one_drill_at_a_time(admin, play):
    play("import time\ntime.sleep(1)")
    first = admin.post(f"{DRILLS_AT}/lease-race/runs", json={})
    second = admin.post(f"{DRILLS_AT}/worker-crash/runs", json={})

    assert (first.status_code, second.status_code, code_of(second)) == (202, 409, "busy")
    ended(admin, first.json()["id"], 20)


def test_only_an_admin_of_all_queues_runs_drills(service, admin):
    for client in (
        service.client(),
        service.client(service.key("operate")),
        service.client(service.key("admin", queues=["a"])),
    ):
        answer = client.post(f"{DRILLS_AT}/lease-race/runs", json={})

        assert (answer.status_code, code_of(answer)) == (403, "not_allowed")
    assert admin.post(f"{DRILLS_AT}/no-such-drill/runs", json={}).status_code == 404


@pytest.mark.long
def test_a_real_drill_is_played_beside_the_servers_own_database(admin):
    started = admin.post(f"{DRILLS_AT}/worker-crash/runs", json={"where": "database"})
    run = ended(admin, started.json()["id"], 110)

    assert run["state"] == "kept", run
