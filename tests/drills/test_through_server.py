"""Drills in which two workers know a server's URL and a key only: the same faults, the same verdicts."""

import json

import pytest

from faultline.errors import InputError
from faultline.lab.drills.registry import DRILLS
from faultline.lab.drills.run_drill import run_drill
from faultline.lab.drills.stage.drill_database import DrillDatabase
from faultline.lab.drills.stage.scene import Scene
from faultline.lab.drills.view.drill_verdict import count, judge
from faultline.lab.drills.view.trace import Trace

LEASES = """
select worker.name, entry.token, entry.outcome
from faultline.ledger as entry join faultline.workers as worker on worker.id = entry.worker
where entry.job_id = %s order by entry.token
"""


def played(name: str, place: DrillDatabase) -> Scene:
    """A scene in which a drill was played; the caller enters it."""
    return Scene(place, Trace(), DRILLS[name].lease, through_server=True)


def test_a_worker_that_wakes_late_is_refused_through_a_server(place):
    """Checked from the database, by statements that share nothing with the drill's own verdict."""
    with played("lease-race", place) as scene:
        DRILLS["lease-race"].play(scene)
        scene.gather()
        db = scene.conn

        leases = db.execute(LEASES, [scene.job]).fetchall()
        (loser, old, expired), (winner, new, succeeded) = leases
        assert (loser, expired, winner, succeeded) == ("A", "expired", "B", "succeeded")
        assert new > old
        written = db.execute("select worker, token from effects where job_id = %s", [scene.job]).fetchall()
        assert written == [("B", new)] * 2
        refused = db.execute(
            "select worker, token, current_token, reason, times from faultline.refused_writes"
            " where job_id = %s", [scene.job],
        )  # fmt: skip
        assert refused.fetchall() == [("A", old, new, "token_mismatch", 1)]
        assert judge(db, "lease_race", job=scene.job).kept

        claims = [sign.who for sign in scene.trace.signs if sign.what == "lease_acquired"]
        assert claims == ["A", "B"]


@pytest.mark.long
def test_a_killed_workers_job_is_done_by_another_through_a_server(server, console):
    code = run_drill("worker-crash", dsn=server.dsn(), through_server=True, console=console)

    printed = console.file.getvalue()
    assert code == 0, printed
    assert "attempt 2 succeeded after 1 crash" in printed


@pytest.mark.long
def test_a_late_result_is_refused_though_its_own_worker_holds_the_job(place):
    with played("self-zombie", place) as scene:
        play = DRILLS["self-zombie"].through_server
        assert play is not None
        play(scene)
        scene.gather()

        outcomes = scene.conn.execute(
            "select outcome::text from faultline.ledger where job_id = %s order by token", [scene.job]
        )
        assert outcomes.fetchall() == [("expired",), ("succeeded",)]
        assert judge(scene.conn, "self_zombie", job=scene.job).kept
        assert count(scene.conn, scene.jobs)["refused"] == 1
        told = [sign.what for sign in scene.trace.signs if sign.who == "A"]
        assert told.index("result_held") < told.index("stopped") < told.index("stale_write_blocked")


def test_a_worker_is_told_no_dsn(place, monkeypatch):
    orders: dict[str, dict[str, object]] = {}

    class Noted:
        def __init__(self, who: str, order: dict[str, object], *rest: object, **options: object) -> None:
            orders[who] = order

        def end(self) -> None: ...

    with played("lease-race", place) as scene:
        monkeypatch.setattr("faultline.lab.drills.stage.scene.DrillProcess", Noted)
        scene.worker("A")

    assert "dsn" not in orders["A"]
    assert place.dsn not in json.dumps(orders["A"])


@pytest.mark.long
def test_no_process_says_the_key(server, console):
    code = run_drill("lease-race", dsn=server.dsn(), through_server=True, log_json=True, console=console)

    events = [json.loads(line) for line in console.file.getvalue().splitlines()]
    assert code == 0
    assert {event["process"] for event in events} == {"drill", "server", "A", "B"}
    assert "flk_" not in console.file.getvalue()


def test_a_drill_that_is_not_rehearsed_so_is_named(console):
    with pytest.raises(InputError, match="lease-race, worker-crash, self-zombie"):
        run_drill("failover", through_server=True, console=console)
