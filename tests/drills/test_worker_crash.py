"""A worker is killed in mid-job: its lease runs out, another does the work, and the crash is counted."""

import pytest

from faultline.lab.drills.run_drill import run_drill
from faultline.lab.drills.view.drill_verdict import judge


@pytest.fixture
def scene(aftermath):
    return aftermath("worker-crash")


def test_a_killed_workers_job_is_done_by_another(scene):
    db = scene.conn

    (job,) = db.execute(
        "select state, attempt, crashes, worker from faultline.jobs where id = %s", [scene.job]
    )
    assert job == ("succeeded", 2, 1, "B")
    outcomes = db.execute(
        "select outcome::text from faultline.ledger where job_id = %s order by token", [scene.job]
    )
    assert outcomes.fetchall() == [("expired",), ("succeeded",)]
    written = db.execute("select worker, wrote from effects where job_id = %s order by wrote", [scene.job])
    assert written.fetchall() == [("B", "credit 100"), ("B", "debit 100")]


def test_it_was_killed_with_its_rows_written_and_not_committed(scene):
    told = [(sign.who, sign.what) for sign in scene.trace.signs]
    assert told.index(("A", "at_barrier")) < told.index(("A", "exited")) < told.index(("B", "lease_acquired"))
    assert ("A", "transaction_left") not in told


def test_it_prints_a_verdict_and_ends_in_0(server, console):
    code = run_drill("worker-crash", dsn=server.dsn(), console=console)

    printed = console.file.getvalue()
    assert code == 0, printed
    assert "the pacemaker went with its worker" in printed
    assert "attempt 2 succeeded after 1 crash" in printed


DAMAGES = [
    (
        "update faultline.ledger set crashes = 0",
        "the crash went through the ordinary retry path, and was counted",
    ),
    ("delete from sightings where what = 'gone'", "the pacemaker went with its worker"),
    ("insert into effects select job_id, token, 'A', wrote from effects", "its work was committed once"),
    (
        "insert into faultline.refusals values (%(job)s, 1, 1, 'gone', 1, now(), now())",
        "no worker was refused",
    ),
]


def test_the_verdict_sees_what_is_broken(scene):
    db = scene.conn
    assert judge(db, "worker_crash", job=scene.job).kept

    for damage, promise in DAMAGES:
        with db.transaction(force_rollback=True):
            db.execute(damage, {"job": scene.job})
            verdict = judge(db, "worker_crash", job=scene.job)

        assert promise in [finding.promise for finding in verdict.broken], damage
