"""The ownership of a job: claims, beats, expiry, and workers that come too late."""

from proof.explorer.scenario import Scenario, VerbStop
from proof.explorer.scenarios.plays import (
    ONE_EXPIRY,
    does,
    does_together,
    if_claimed,
    in_turn,
    is_killed,
    keeps_up,
    time_passes,
    watches,
    works,
    works_at_once,
    works_quickly,
)
from proof.explorer.scenarios.verbs import beat, claim, complete_many, enqueued, fence, in_hand, reap, rows
from proof.explorer.step import Step

LOOKED = VerbStop("reap", "if cardinality(expired) > 0")

FORGET = Step("a standby that lost the claim is promoted", "select explorer.forget(1)")

SCENARIOS = (
    Scenario(
        "two workers",
        "A claims and works; its lease runs out; the watchdog takes it back; B claims and works",
        {
            "A": if_claimed("A", works("A")),
            "T": ONE_EXPIRY,
            "W": watches(),
            "B": if_claimed("B", works("B")),
        },
        enqueued(),
    ),
    Scenario(
        "self-zombie",
        "the same worker claims its own expired job while its first handler still runs",
        {
            "A": keeps_up("A", works("A")),
            "T": ONE_EXPIRY,
            "W": watches(),
            "a": if_claimed("A2", keeps_up("A2", works_quickly("A2"))),
        },
        enqueued() + in_hand("A"),
        is_quick=True,
    ),
    Scenario(
        "heartbeat against reaper",
        "a beat and a reap meet on a lease that has just run out",
        {
            "A": in_turn(does_together(beat("A")), works_quickly("A")),
            "T": time_passes([10, 10]),
            "W": does_together(reap()),
        },
        enqueued() + in_hand("A"),
        stops=(LOOKED,),
        never_wait=frozenset({"W"}),
        is_quick=True,
    ),
    Scenario(
        "claimers",
        "three workers claim two jobs, each in a transaction that others can meet",
        {
            "A": in_turn(does_together(claim("A")), works_at_once("A")),
            "B": in_turn(does_together(claim("B")), works_at_once("B")),
            "C": in_turn(does_together(claim("C")), works_at_once("C")),
        },
        enqueued(2),
        never_wait=frozenset({"A", "B", "C"}),
        sees_refusals=False,
    ),
    Scenario(
        "batches",
        "A settles two jobs at once while its pacemaker beats and the watchdog takes them back; B takes over",
        {
            "A": does_together(complete_many("A")),
            "a": does(beat("A")),
            "T": ONE_EXPIRY,
            "W": watches(),
            "B": if_claimed("B", does(complete_many("B")), room=2),
        },
        enqueued(2) + in_hand("A", 2),
        never_wait=frozenset({"A", "a", "W"}),
    ),
    Scenario(
        "killed before the commit",
        "A dies between its completion and its commit, with the row in its hands; B takes over",
        {
            "A": is_killed("A"),
            "T": ONE_EXPIRY,
            "W": watches(),
            "B": if_claimed("B", works("B")),
        },
        enqueued() + in_hand("A"),
        never_wait=frozenset({"W"}),
    ),
    Scenario(
        "lossy failover",
        "a promoted standby has lost A's claim and issues the same token to B",
        {
            "A": keeps_up("A", works("A")),
            "F": does(FORGET),
            "B": if_claimed("B", keeps_up("B", works("B"))),
            "C": if_claimed("C", works_at_once("C")),
        },
        enqueued() + in_hand("A"),
        is_quick=True,
    ),
    Scenario(
        "rows under a fence",
        "A writes rows of its own under a fence, commits them, and completes later; B takes over",
        {
            "A": in_turn(does_together(fence("A"), rows("A", "fenced")), works_at_once("A")),
            "T": ONE_EXPIRY,
            "W": watches(),
            "B": if_claimed("B", works_quickly("B")),
        },
        enqueued() + in_hand("A"),
        never_wait=frozenset({"W"}),
        is_quick=True,
    ),
)
