"""Limits, order, rates and schedules: a good run is accepted, each planted breach is found."""

from pathlib import Path

import pytest

import faultline
from proof.explorer.rewriting import rewritten
from proof.nemesis.flow import SAYS, Flow, Grant, HeldLease, Noted, checks
from proof.nemesis.mutants import MUTANTS

SHIPPED = Path(faultline.__file__).parent / "sql" / "functions"


def broken(flow: Flow) -> list[str]:
    return [name for name, _, against in checks(flow) if list(against)]


def crowd(*spans: tuple[int, int], key: str = "") -> list[HeldLease]:
    """Leases of the task `crowd`, each of a key of its own: a token, and the number of its end."""
    return [HeldLease(job, "crowd", key or str(job), *span) for job, span in enumerate(spans, start=1)]


def started(task: str, *jobs: int) -> list[HeldLease]:
    """Leases of one key, one after the other."""
    return [HeldLease(job, task, "a", 10 * turn, 10 * turn + 5) for turn, job in enumerate(jobs, start=1)]


def granted(*moments: tuple[float, int], clock: float = 0.0, waited: float = 0.0) -> list[Grant]:
    return [Grant("metered", many, at - waited, at, at + clock) for at, many in moments]


def fired(*times: int) -> list[Noted]:
    return [Noted("each-second", at, at) for at in times]


def skipped(at: int, schedule: str) -> Noted:
    return Noted(schedule, at, None, "skipped")


def ticks(*jobs: int) -> dict[int, str]:
    return dict.fromkeys(jobs, "each-second")


def test_a_run_in_which_all_is_well_breaks_nothing():
    flow = Flow(
        leases=[
            *crowd((1, 9), (1, 8), (2, 10), (3, 11), (12, 20)),  # the fifth has the slot of the second
            *started("in_line", 101, 101, 103),
            *started("by_turns", 201, 203, 201),
        ],
        grants=granted((50.0, 2), (51.0, 2), (51.5, 1)),
        occurrences=[*fired(1, 2, 3), Noted("one-at-a-time", 1, 9), skipped(2, "one-at-a-time")],
        ticks={**ticks(1, 2, 3), 9: "one-at-a-time"},
    )

    assert broken(flow) == []
    assert [name for name, *_ in checks(flow)] == list(SAYS)


def test_jobs_that_are_admitted_late_are_counted_from_when_they_were_granted():
    """An admission may wait for a lock after it has taken its tokens."""
    assert broken(Flow(grants=[*granted((53.0, 2), waited=3.0), *granted((53.1, 2))])) == []


def test_a_clock_that_is_set_forward_fills_the_bucket():
    assert broken(Flow(grants=[*granted((50.0, 2)), *granted((50.1, 2), clock=9.0)])) == []


PLANTED = {
    "five at once": (Flow(leases=crowd((1, 9), (2, 9), (3, 9), (4, 9), (5, 9))), "LimitHolds"),
    "three of a key": (Flow(leases=crowd((1, 9), (2, 9), (3, 9), key="a")), "LimitHolds"),
    "a retry that blocks is overtaken": (Flow(leases=started("in_line", 1, 2, 1)), "OrderHolds"),
    "a later job starts first": (Flow(leases=started("by_turns", 2, 1)), "OrderHolds"),
    "a bucket is emptied twice": (Flow(grants=granted((50.0, 2), (50.1, 2))), "RateHolds"),
    "a rate is passed bit by bit": (
        Flow(grants=granted(*((50 + n / 3, 1) for n in range(30)))),
        "RateHolds",
    ),
    "a job that no occurrence names": (Flow(occurrences=fired(1), ticks=ticks(1, 2)), "OccurrenceIsOne"),
    "two occurrences, one job": (
        Flow(occurrences=[*fired(1), Noted("each-second", 2, 1)], ticks=ticks(1)),
        "OccurrenceIsOne",
    ),
    "an occurrence without its job": (Flow(occurrences=fired(1)), "OccurrenceIsOne"),
    "an occurrence is left out": (Flow(occurrences=[skipped(1, "each-second")]), "OccurrenceIsOne"),
    "an occurrence is missing": (Flow(occurrences=fired(1, 3), ticks=ticks(1, 3)), "OccurrenceIsOne"),
}


@pytest.mark.parametrize(("flow", "name"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_breach_is_found_by_its_name(flow, name):
    assert broken(flow) == [name]


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_of_a_storm_changes_what_is_shipped(name):
    for function, old, new in MUTANTS[name].edits:
        (file,) = SHIPPED.rglob(f"{function}.sql")

        assert rewritten(file.read_text(), (function, old, new)) != file.read_text()
