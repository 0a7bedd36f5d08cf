"""Whatever a job lives through by Faultline's own verbs, the audit finds nothing to say against it."""

from typing import Any

import psycopg
import pytest

from faultline.audit import INVARIANTS, examine
from faultline.store.run import Store
from tests.audit.lives import LIVES, Life
from tests.support import Clock

Db = psycopg.Connection[Any]


def test_a_database_without_jobs_holds(db: Db):
    report = examine(db)

    assert report.holds, str(report)
    assert [verdict.name for verdict in report.verdicts] == list(INVARIANTS)


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_a_life_by_our_own_verbs_holds(life: Life, store: Store, clock: Clock, db: Db):
    life(store, clock)

    report = examine(db)

    assert report.holds, str(report)
    assert not [remark for verdict in report.verdicts for remark in verdict.remarks]
    assert report["NothingLost"].looked_at
