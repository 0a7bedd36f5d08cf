"""Schedules: two watchdogs with a crash at each statement; two releases that start together."""

from dataclasses import replace

from proof.explorer.scenario import Scenario, VerbStop
from proof.explorer.scenarios.plays import ROLLBACK, does, in_turn
from proof.explorer.scenarios.verbs import fire, look_for_schedules, scheduled, sync, tick
from proof.explorer.step import Play, Program

HELD = VerbStop("fire", "foreach one in array held loop")
MOVES = VerbStop("fire", "return query\n  with asked")
LOCKED = VerbStop("sync_schedules", "update faultline.app_releases")


def watches(who: str) -> Program:
    """One turn of a watchdog."""
    return does(look_for_schedules(who), fire(who))


def is_killed(who: str) -> Program:
    """A watchdog that fires, and dies before its commit; with stops inside, at each statement."""

    def play() -> Play:
        yield look_for_schedules(who)
        yield replace(fire(who), opens=True)
        yield ROLLBACK

    return play


SCENARIOS = (
    Scenario(
        "two watchdogs and a schedule",
        "two watchdogs fire one schedule, and a third dies while it fires",
        {"V": watches("V"), "W": watches("W"), "X": is_killed("X")},
        (*scheduled(), tick(6).sql),
        stops=(HELD,),
        never_wait=frozenset({"V", "W", "X"}),
        sees_refusals=False,
    ),
    Scenario(
        "a schedule is due again while it is fired",
        "a watchdog fires what it saw, while time goes on and another fires what came since",
        {"V": watches("V"), "T": does(tick(5)), "W": in_turn(watches("W"), watches("W"))},
        (*scheduled(), tick(6).sql),
        stops=(MOVES,),
        never_wait=frozenset({"V", "W"}),
        sees_refusals=False,
    ),
    Scenario(
        "two releases",
        "workers of two releases start together, each twice; the lower one changes nothing",
        {
            "A": does(sync("A", 1, "5 s"), sync("A", 1, "5 s")),
            "B": does(sync("B", 2, "7 s"), sync("B", 2, "7 s")),
        },
        (sync("S", 1, "5 s").sql,),
        stops=(LOCKED,),
        sees_refusals=False,
        is_quick=True,
    ),
)
