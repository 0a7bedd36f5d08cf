"""A worker stalls past its lease, claims its own job again, and its older attempt is refused."""

import pytest

from faultline.lab.drills.view.drill_verdict import count, judge


@pytest.fixture
def scene(aftermath):
    return aftermath("self-zombie")


def test_a_late_commit_is_refused_though_its_own_worker_holds_the_job(scene):
    """Checked from the database, by statements that share nothing with the drill's own verdict."""
    db = scene.conn

    leases = db.execute("select worker, token, outcome::text from faultline.ledger where job_id = %s"
                        " order by token", [scene.job]).fetchall()  # fmt: skip
    assert [outcome for _, _, outcome in leases] == ["expired", "snoozed", "succeeded"]
    assert len({worker for worker, _, _ in leases}) == 1
    written = db.execute("select token from effects where job_id = %s", [scene.job]).fetchall()
    assert written == [(leases[2][1],)] * 2
    refused = db.execute(
        "select token, reason from faultline.refused_writes where job_id = %s and reason = 'token_mismatch'",
        [scene.job],
    )
    assert refused.fetchall() == [(leases[0][1], "token_mismatch")]
    # And it came while the worker held the job again.
    told = [(sign.what, sign.facts.get("point")) for sign in scene.trace.signs if sign.who == "A"]
    in_order = [
        ("paused", "claimed"),
        ("goes_on", "commit.sending"),
        ("commit_refused", None),
        ("goes_on", "claimed"),
    ]
    assert sorted(in_order, key=told.index) == in_order


DAMAGES = [
    ("update effects set token = 1", "its work was committed once, by a newer attempt than the late one"),
    ("update faultline.ledger set worker = 99 where outcome = 'succeeded'",
     "it was one worker all along, and each of its claims had a higher token"),
    ("delete from faultline.refusals", "the refusal is on record, with both tokens"),
    ("update faultline.ledger set outcome = 'failed' where outcome = 'snoozed'",
     "two attempts of one job never ran in this worker at once"),
    ("update sightings set at = at + interval '1 hour' where what = 'late commit refused'",
     "the late commit met the fence while its own worker held the job, and was refused"),
]  # fmt: skip


def test_the_verdict_sees_what_is_broken(scene):
    db = scene.conn
    assert judge(db, "self_zombie", job=scene.job).kept

    for damage, promise in DAMAGES:
        with db.transaction(force_rollback=True):
            db.execute(damage)
            verdict = judge(db, "self_zombie", job=scene.job)

        assert promise in [finding.promise for finding in verdict.broken], damage

    with db.transaction(force_rollback=True):
        db.execute("delete from faultline.refusals")
        assert not count(db, scene.jobs)["refused"]
