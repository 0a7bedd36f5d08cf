"""A job that kills every process it runs in ends among the dead; the eight that ran beside it succeed."""

import pytest

from faultline.lab.drills.run_drill import run_drill
from faultline.lab.drills.view.drill_verdict import judge


@pytest.fixture
def scene(aftermath):
    return aftermath("poison-job")


def test_it_prints_a_verdict_and_ends_in_0(server, console):
    code = run_drill("poison-job", dsn=server.dsn(), console=console)

    printed = console.file.getvalue()
    assert code == 0, printed
    assert "8 of 8 that ran beside it succeeded" in printed
    assert "out of crashes: crashed alone 3 times, at last by SIGSEGV" in printed


DAMAGES = [
    ("update faultline.dead set reason = 'out of attempts'", "only what it did alone was held against it"),
    ("update faultline.ledger set error = 'boom' where outcome = 'failed'", "how it died is kept"),
    ("insert into effects select job_id, token, 'A', wrote from effects", "their work was committed once"),
    ("delete from sightings where what = 'outlived it'", "the worker that ran it alone outlived it"),
    ("update faultline.ledger set crashes = 2 where outcome = 'succeeded'", "the innocent crashed once"),
    (
        "update faultline.ledger set outcome = 'cancelled' where outcome = 'succeeded'",
        "no innocent was buried",
    ),
]


GIVEN_BACK = """
insert into faultline.ledger
select (jsonb_populate_record(entry, jsonb_build_object(
         'token', entry.token + more, 'slot', entry.token + more, 'outcome', 'released', 'error', null))).*
from faultline.ledger as entry
cross join generate_series(1000001, 1000005) as more
where entry.job_id = %s and entry.outcome = 'expired'
"""


def test_leases_that_were_given_back_are_no_loop(scene):
    """A busy worker gives back what it could not begin or renew in time; no attempt is counted."""
    db = scene.conn
    about = {"job": scene.job, "jobs": scene.jobs}

    with db.transaction(force_rollback=True):
        db.execute(GIVEN_BACK, [scene.job])
        verdict = judge(db, "poison_job", **about)

    assert verdict.kept, verdict


def test_the_verdict_sees_what_is_broken(scene):
    db = scene.conn
    about = {"job": scene.job, "jobs": scene.jobs}
    assert judge(db, "poison_job", **about).kept

    for damage, promise in DAMAGES:
        with db.transaction(force_rollback=True):
            db.execute(damage)
            verdict = judge(db, "poison_job", **about)

        assert any(finding.promise.startswith(promise) for finding in verdict.broken), damage
