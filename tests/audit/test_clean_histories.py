"""Whatever a job lives through by Faultline's own verbs, the audit finds nothing to say against it."""

import pytest

from faultline.audit import INVARIANTS, examine
from tests.audit.conftest import House
from tests.audit.lives import LIVES, Life


def test_a_database_without_jobs_holds(house: House):
    report = examine(house.db)

    assert report.holds, str(report)
    assert [verdict.name for verdict in report.verdicts] == list(INVARIANTS)


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_a_life_by_our_own_verbs_holds(life: Life, house: House):
    life(house.store, house.clock)

    report = examine(house.db)

    assert report.holds, str(report)
    assert not [remark for verdict in report.verdicts for remark in verdict.remarks]
    assert report["NothingLost"].looked_at
