"""What producers, sink and logs know is held against the database; each lie that is planted is found."""

import json
from typing import Any

import pytest

from proof.nemesis.leftovers import unexpected
from proof.nemesis.oracle import SAYS, Facts, Standing, judge


def note(
    request: int = 1, job: int | None = 10, said: str = "ok", how: str = "alone", **more: Any
) -> dict[str, Any]:
    return {"at": 100.0, "how": how, "request": request, "job": job, "said": said, **more}


def job(state: str = "succeeded", task: str = "move", request: int | None = 1) -> Standing:
    return Standing(state, task, request)


def broken(facts: Facts) -> dict[str, tuple[str, ...]]:
    return {finding.name: finding.examples for finding in judge(facts) if not finding.holds}


def test_a_run_in_which_all_is_well_breaks_nothing():
    facts = Facts(
        notes=[
            note(),
            note(2, 11, how="in", order=True),
            note(3, 12, again=12),
            note(4, None, said="unknown"),
        ],
        jobs={10: job(), 11: job(request=2), 12: job(request=3), 13: job(task="call_out", request=4)},
        orders=frozenset({2}),
        keys={(13, 4): frozenset({"a key"}), (13, 9): frozenset({"of a job that was lost"})},
        ends_seen={10: "succeeded"},
    )

    assert broken(facts) == {}
    assert {finding.name for finding in judge(facts)} <= SAYS.keys()


PLANTED = {
    "an acknowledged job is nowhere": (Facts([note()], {}), "Acknowledged"),
    "an acknowledged job is another request": (Facts([note()], {10: job(request=9)}), "Acknowledged"),
    "a request made two jobs": (Facts([], {10: job(), 11: job()}), "OneRequest"),
    "one key named two jobs": (Facts([note(again=11)], {10: job(), 11: job(request=2)}), "OneRequest"),
    "a rolled back enqueue is a job": (Facts([note(said="rolled back")], {10: job()}), "OneRequest"),
    "a refused enqueue is a job": (Facts([note(job=None, said="error")], {10: job()}), "OneRequest"),
    "an order has no job": (Facts([], {}, orders=frozenset({1})), "Together"),
    "a job has no order": (Facts([note(how="in")], {10: job()}), "Together"),
    "a cancelled job succeeded": (Facts([note(said="cancelled", how="cancel")], {10: job()}), "CancelStays"),
    "a job called with two keys": (
        Facts([], {10: job()}, keys={(10, 1): frozenset({"a", "b"})}),
        "KeyStays",
    ),
    "a key is that of two jobs with one id": (
        Facts([], {10: job()}, keys={(10, 1): frozenset({"a"}), (10, 2): frozenset({"a"})}),
        "KeyStays",
    ),
    "a call was left out": (Facts([], {10: job(task="call_out")}), "KeyStays"),
    "a holder was refused": (Facts([], {10: job()}, holders_refused=["job 10"]), "HolderIsHeard"),
    "a result is another's": (Facts([], {10: job()}, results_of_others=["job 10"]), "ResultIsOwn"),
    "an end was undone": (Facts([], {10: job(state="queued")}, ends_seen={10: "succeeded"}), "EndsStay"),
}


@pytest.mark.parametrize(("facts", "name"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_lie_is_found_by_its_name(facts, name):
    assert list(broken(facts)) == [name]


def test_what_was_answered_in_the_moments_a_failover_lost_may_be_gone():
    assert broken(Facts([note()], {}, promised_until=99.0)) == {}
    assert list(broken(Facts([note()], {}, promised_until=101.0))) == ["Acknowledged"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            json.dumps({"level": "info", "event": "execution_finished", "error": "ValueError: stumbled"}),
            False,
        ),
        (json.dumps({"level": "warning", "message": "the database is away"}), False),
        (
            json.dumps(
                {"level": "error", "message": "chore failed", "error": "Traceback (most ...\nKeyError"}
            ),
            True,
        ),
        ("Traceback (most recent call last):", True),
        ("faultline: cannot connect to user=postgres; check FAULTLINE_DSN", False),
    ],
)
def test_a_traceback_in_a_log_is_told_from_what_belongs_there(line, expected):
    assert (unexpected(line) is not None) is expected
