"""A worker is killed between effect and commit: what was not committed is done again, the rest stands."""

import pytest

from faultline.lab.drills.view.drill_verdict import judge


@pytest.fixture
def scene(aftermath):
    return aftermath("crash-mid-apply")


def test_each_job_was_done_once_by_the_worker_that_could_commit_it(scene):
    half, done, whole = scene.jobs

    written = scene.conn.execute(
        "select job_id, worker, wrote from effects where job_id = any(%s) order by job_id, wrote",
        [scene.jobs],
    )
    both = ("credit 100", "debit 100")
    assert written.fetchall() == [
        *((half, "B", wrote) for wrote in both),
        *((done, "A", wrote) for wrote in both),
        *((whole, "B", wrote) for wrote in both),
    ]
    outcomes = scene.conn.execute(
        "select job_id, array_agg(outcome::text order by token) from faultline.ledger"
        " where job_id = any(%s) group by job_id order by job_id",
        [scene.jobs],
    )
    twice = ["expired", "succeeded"]
    assert [outcome for _, outcome in outcomes] == [twice, ["succeeded"], twice]


DAMAGES = [
    ("insert into effects select job_id, token, 'A', 'debit 100' from effects where worker = 'B' limit 1",
     "what was not committed at the kill is gone, and was done again by another"),
    ("delete from effects where wrote = 'credit 100' and worker = 'A'",
     "the work of each was committed once, whole, by the one who ended it"),
    ("update sightings set at = at - interval '1 hour' where what = 'killed'",
     "what was committed at the kill stands, and was not done again"),
    ("update faultline.ledger set crashes = 0", "each crash was counted, and no worker was refused"),
]  # fmt: skip


def test_the_verdict_sees_what_is_broken(scene):
    db, about = scene.conn, {"job": scene.job, "jobs": scene.jobs}
    assert judge(db, "crash_mid_apply", **about).kept

    for damage, promise in DAMAGES:
        with db.transaction(force_rollback=True):
            db.execute(damage)
            verdict = judge(db, "crash_mid_apply", **about)

        assert promise in [finding.promise for finding in verdict.broken], damage
