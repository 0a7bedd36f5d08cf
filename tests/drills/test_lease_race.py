"""A worker is frozen in its commit, loses its job, wakes, and is refused: two real processes, no sleep."""

import json
import re
import secrets
import sys
from pathlib import Path

import pytest

from faultline.errors import InputError
from faultline.lab.drills.run_drill import run_drill
from faultline.lab.drills.scenarios import lease_race
from faultline.lab.drills.view.drill_verdict import judge
from tests.drills.processes import MARK, is_alive, pids_marked

DRILLS = Path(lease_race.__file__).parents[1]


@pytest.fixture
def scene(aftermath):
    return aftermath("lease-race")


def test_a_worker_that_wakes_after_another_committed_is_refused(scene):
    """Checked from the database, by statements that share nothing with the drill's own verdict."""
    db = scene.conn

    leases = db.execute("select worker.name, entry.token, entry.outcome from faultline.ledger as entry"
                        " join faultline.workers as worker on worker.id = entry.worker"
                        " where entry.job_id = %s order by entry.token", [scene.job]).fetchall()  # fmt: skip
    (loser, old, expired), (winner, new, succeeded) = leases
    assert (loser, expired, winner, succeeded) == ("A", "expired", "B", "succeeded")
    assert new > old
    written = db.execute(
        "select worker, token, wrote from effects where job_id = %s order by wrote", [scene.job]
    )
    assert written.fetchall() == [("B", new, "credit 100"), ("B", new, "debit 100")]
    refused = db.execute(
        "select worker, token, current_token, reason from faultline.refused_writes where job_id = %s",
        [scene.job],
    )
    assert refused.fetchall() == [("A", old, new, "token_mismatch")]


def test_the_frozen_worker_had_passed_its_own_deadline_check(scene):
    """It is stopped at the fail point between its look at the lease and the sending of its commit."""
    at: dict[str, float] = {}  # by its own time: what it wrote may be read after it was seen to be stopped
    for sign in scene.trace.signs:
        if sign.who == "A":
            at.setdefault(sign.what, sign.seconds)
    assert at["at_barrier"] <= at["stopped"] < at["transaction_left"]
    assert at["stopped"] < at["stale_write_blocked"]


def test_the_second_worker_did_not_claim_first(scene):
    claims = [sign.who for sign in scene.trace.signs if sign.what == "lease_acquired"]
    assert claims == ["A", "B"]


def test_it_prints_trace_timeline_and_verdict_and_how_each_run_went(server, console):
    code = run_drill("lease-race", dsn=server.dsn(), runs=2, console=console)

    printed = console.file.getvalue()
    assert code == 0, printed
    assert re.search(r"run 1 of 2: kept in [\d.]+ s\nrun 2 of 2: kept", printed)
    assert "stale_write_blocked" in printed
    assert re.search(r"is REFUSED: token (\d+) \(token_mismatch\); the job's token is \d+", printed)
    assert "BROKEN" not in printed
    assert "2 of 2 runs kept every promise" in printed
    assert max(len(line) for line in printed.splitlines()) <= 80


def test_as_json_it_prints_the_events_of_all_processes_and_nothing_else(server, console):
    code = run_drill("lease-race", dsn=server.dsn(), log_json=True, console=console)

    events = [json.loads(line) for line in console.file.getvalue().splitlines()]
    assert code == 0
    assert {event["process"] for event in events} == {"drill", "A", "B"}
    assert {
        "enqueued",
        "lease_acquired",
        "execution_started",
        "lease_expired",
        "execution_finished",
        "worker_exit",
    } <= {event.get("event") for event in events}
    refused = next(event for event in events if event.get("event") == "stale_write_blocked")
    assert (refused["process"], refused["reason"]) == ("A", "token_mismatch")
    assert refused["stale_token"] < refused["current_token"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_it_leaves_no_process_and_no_database(server, console, monkeypatch, db_names):
    mark = secrets.token_hex(4)
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setattr("faultline.lab.drills.stage.drill_database.PREFIX", f"faultline_drill_{mark}_")

    assert run_drill("lease-race", dsn=server.dsn(), console=console) == 0

    assert not [pid for pid in pids_marked(mark) if is_alive(pid)]
    assert not [name for name in db_names() if mark in name]


DAMAGES = [
    ("insert into effects select * from effects", "its work was committed once"),
    ("update effects set worker = 'A'", "its work was committed once"),
    ("delete from faultline.refusals", "the late write was refused, and it is on record"),
    ("update faultline.refusals set current_token = 7",
     "the late write was refused, and it is on record"),
    ("update faultline.ledger set token = 99 where outcome = 'expired'",
     "the later claim has the higher token"),
    ("delete from faultline.ledger where outcome = 'succeeded'", "the job ended once, in success"),
    ("update sightings set at = at + interval '1 hour' where what = 'lease_ends'",
     "no worker took the job before its lease had run out"),
    ("update sightings set at = at - interval '1 hour' where what = 'continued'",
     "the late one was frozen in its commit, and woke after the other had committed"),
]  # fmt: skip


def test_the_verdict_sees_what_is_broken(scene):
    db = scene.conn
    assert judge(db, "lease_race", job=scene.job).kept

    for damage, promise in DAMAGES:
        with db.transaction(force_rollback=True):
            db.execute(
                "alter table faultline.ledger drop constraint"
                " an_end_stands_in_slot_0_and_anything_else_in_its_tokens"
            )
            db.execute(damage)
            verdict = judge(db, "lease_race", job=scene.job)

        assert promise in [finding.promise for finding in verdict.broken], damage
        assert not verdict.kept


def test_no_drill_sleeps():
    """Barriers and the lease alone decide; only the demo pauses, for its reader."""
    sleeping = [
        path.name
        for path in DRILLS.rglob("*.py")
        if re.search(r"\bsleep\(", path.read_text()) and path.name not in ("zombie.py", "workloads.py")
    ]

    assert sleeping == []
    assert "sleep" not in re.search(r"def transfer.*?\n\n\n", (DRILLS / "workloads.py").read_text(), re.S)[0]


@pytest.mark.parametrize("wrong", [{"name": "lease race"}, {"name": "lease-race", "runs": 0}])
def test_a_drill_that_does_not_exist_is_named_as_such(console, wrong):
    with pytest.raises(InputError, match=r"lease-race, worker-crash|from 1 to"):
        run_drill(**wrong, console=console)
