"""Each check can fail: damage done by hand turns its invariant red, and the job is named.

Each is sabotaged too: with its SQL emptied the same damage goes unseen, so it is this check that sees it.
"""

from importlib.resources import files

import pytest

from faultline.audit import AuditReport, Counterexample, examine, invariants
from tests.audit.conftest import House
from tests.audit.damage import DAMAGES, Damage

FACTS = {
    "snapshot",
    "statement_timeout",
    "facts",
    "next_range",
    "looked_at",
    "keys",
    "effects",
    "effects_columns",
}
EMPTY = "select null::bigint, '', true where false"
CHECKS = {check.name: check for check in invariants.every()}


def test_every_check_has_a_damage_it_sees_and_every_sql_file_is_used():
    shipped = {
        entry.name.removesuffix(".sql") for entry in files("faultline.audit").joinpath("sql").iterdir()
    }

    assert {damage.check for damage in DAMAGES} == set(CHECKS)
    assert shipped == set(CHECKS) | FACTS


@pytest.mark.parametrize(
    "damage", DAMAGES, ids=[f"{number}-{damage.check}" for number, damage in enumerate(DAMAGES)]
)
def test_damage_is_seen_by_its_own_check_and_names_the_job(
    damage: Damage, house: House, monkeypatch: pytest.MonkeyPatch
):
    job_id = damage.do(house.db, house.store, house.clock)
    options = {**damage.options, "acknowledged": [job_id] if damage.acknowledged else []}

    assert_seen(examine(house.db, **options), damage, job_id)

    # The mutant: this one check emptied, all the others as shipped.
    shipped = invariants.source
    monkeypatch.setattr(
        "faultline.audit.walk.source", lambda name: EMPTY if name == damage.check else shipped(name)
    )
    with pytest.raises(AssertionError, match="not seen"):
        assert_seen(examine(house.db, **options), damage, job_id)


def assert_seen(report: AuditReport, damage: Damage, job_id: int) -> None:
    verdict = report[CHECKS[damage.check].invariant]
    told: list[Counterexample] = [
        example
        for example in (verdict.examples if damage.sure else verdict.remarks)
        if example.check == damage.check
    ]
    assert told, "not seen"
    assert {example.job_id for example in told} == {job_id}
    if damage.sure:
        assert not verdict.holds
        assert not report.holds
        assert f"{verdict.name} is violated: job {job_id}: {told[0].told}" in str(report)
    else:
        assert verdict.holds
