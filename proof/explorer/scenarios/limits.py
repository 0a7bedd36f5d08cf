"""Limits: one slot, and those who take it, free it, or count it at once."""

from inspect import cleandoc

from proof.explorer.scenario import Scenario, VerbStop
from proof.explorer.scenarios.plays import (
    ONE_EXPIRY,
    does,
    does_together,
    if_claimed,
    works_at_once,
    works_quickly,
)
from proof.explorer.scenarios.verbs import cancel, claim, enqueued, in_hand, promote, reap, release
from proof.explorer.step import Step

COUNTED = VerbStop("admit", "wanted := least(")
GIVEN = VerbStop("admit", "left_over := left_over - given")
RAISED = VerbStop("raise_limit_floors", "update faultline.limits as l set held_floor")
NEWEST = 20_000


def limited(jobs: int, bound: str = "total => 1") -> tuple[str, ...]:
    """For a setup: so many jobs of one key, of which one may hold a lease."""
    return (
        "insert into explorer.at_most values (1)",
        f"select faultline.set_limit('api', {bound})",
        "select faultline.limit_task('limited', 'api')",
        cleandoc(f"""
        insert into explorer.told (who, verb, job_id, answer)
        select 'setup', 'enqueue', faultline.enqueue('limited', limit_key => 'k'), 'done'
        from generate_series(1, {jobs})"""),
    )


def raises_floors() -> Step:
    return Step("raises the floors", "select faultline.raise_limit_floors()")


def sets(most: int) -> Step:
    return Step(f"allows {most}", f"select faultline.set_limit('api', total => {most})")


SCENARIOS = (
    Scenario(
        "two claims and one slot",
        "two workers claim where one job may run; the second counts what the first has admitted",
        {"A": does_together(claim("A")), "B": does_together(claim("B"))},
        limited(2),
        stops=(COUNTED,),
        sees_refusals=False,
        is_quick=True,
    ),
    Scenario(
        "two claims and one key",
        "the same where jobs of a key run in order",
        {"A": does_together(claim("A")), "B": does_together(claim("B"))},
        limited(2, "per_key => 1"),
        stops=(GIVEN,),
        sees_refusals=False,
        is_quick=True,
    ),
    Scenario(
        "a plain job ahead of an admitted one",
        "three workers claim one job each, a plain one first: the limited job behind it has its slot already",
        {"A": does(claim("A")), "B": does(claim("B")), "C": does(claim("C"))},
        enqueued() + limited(3),
        stops=(COUNTED,),
        sees_refusals=False,
        is_quick=True,
    ),
    Scenario(
        "a slot that is freed",
        "a worker completes, or is reaped first, while two others claim",
        {
            "A": works_quickly("A"),
            "T": ONE_EXPIRY,
            "W": does(reap(), promote()),
            "B": if_claimed("B", works_at_once("B")),
            "C": does(claim("C")),
        },
        limited(2) + in_hand("A"),
    ),
    Scenario(
        "a floor against an admission",
        "the floor of what is held is raised while a slot is freed and given on",
        {
            "A": works_at_once("A"),
            "F": does_together(raises_floors()),
            "B": does_together(claim("B")),
            "C": does(claim("C")),
        },
        (*limited(3), *in_hand("A"), f"select setval('faultline.places', {NEWEST})"),
        stops=(COUNTED, RAISED),
        sees_refusals=False,
    ),
    Scenario(
        "a limit that is lowered",
        "a person allows one job less while a worker gives its job back and two claim",
        {
            "P": does_together(sets(1)),
            "A": does(release("A")),
            "B": does_together(claim("B")),
            "C": does(claim("C")),
        },
        ("insert into explorer.at_most values (2)", *limited(3, "total => 2")[1:], *in_hand("A")),
        stops=(COUNTED,),
        sees_refusals=False,
    ),
    Scenario(
        "cancel of a job that holds a slot",
        "a person cancels a running job; its slot goes on, and its worker is refused",
        {
            "P": does_together(cancel("P")),
            "A": works_quickly("A"),
            "B": if_claimed("B", works_at_once("B")),
            "C": does(claim("C")),
        },
        limited(2) + in_hand("A"),
    ),
)
