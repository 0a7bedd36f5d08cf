"""How a lease ends: completed, failed, snoozed, released, buried, dropped; and against which others."""

from proof.explorer.scenario import Scenario, VerbStop
from proof.explorer.scenarios.plays import (
    ONE_EXPIRY,
    does,
    does_together,
    if_claimed,
    in_turn,
    watches,
    works_at_once,
    works_quickly,
)
from proof.explorer.scenarios.verbs import (
    beat,
    bury,
    cancel,
    cancel_claimed,
    complete_many,
    enqueued,
    fail,
    fail_many,
    fence,
    in_hand,
    outcome,
    promote,
    reap,
    release,
    replay,
    rows,
    snooze,
)
from proof.explorer.scenarios.verbs import complete as completes

FENCED = VerbStop("fail", "select * into ended")

SCENARIOS = (
    Scenario(
        "commit with the user's rows",
        "fence, rows and completion in one transaction, while the lease runs out under it",
        {
            "A": does_together(fence("A"), rows("A"), completes("A")),
            "T": ONE_EXPIRY,
            "W": watches(),
            "B": if_claimed("B", works_quickly("B")),
        },
        enqueued() + in_hand("A"),
        never_wait=frozenset({"W"}),
    ),
    Scenario(
        "fail",
        "A reports a failure while its lease is taken back; B takes over",
        {
            "A": does_together(fail("A")),
            "T": ONE_EXPIRY,
            "W": watches(),
            "B": if_claimed("B", works_quickly("B")),
        },
        enqueued() + in_hand("A"),
        stops=(FENCED,),
        never_wait=frozenset({"W"}),
    ),
    Scenario(
        "the last attempt",
        "a failure and an expiry of the last attempt, and an operator who replays the dead",
        {
            "A": does_together(fail("A")),
            "T": ONE_EXPIRY,
            "W": does_together(reap()),
            "P": does_together(replay("P")),
            "B": if_claimed("B", works_at_once("B")),
        },
        enqueued(1, ", max_attempts => 1") + in_hand("A"),
        never_wait=frozenset({"W"}),
    ),
    Scenario(
        "snooze",
        "A snoozes for five seconds while its lease runs out; the watchdog promotes; B takes over",
        {
            "A": does_together(snooze("A")),
            "T": ONE_EXPIRY,
            "W": in_turn(does_together(reap()), does_together(promote())),
            "B": if_claimed("B", works_quickly("B")),
        },
        enqueued() + in_hand("A"),
        never_wait=frozenset({"W"}),
    ),
    Scenario(
        "release",
        "A lets go while it beats and while the watchdog takes the lease back; B takes over",
        {
            "A": does_together(release("A")),
            "a": does(beat("A")),
            "T": ONE_EXPIRY,
            "W": watches(),
            "B": if_claimed("B", works_at_once("B")),
        },
        enqueued() + in_hand("A"),
        never_wait=frozenset({"W", "a"}),
    ),
    Scenario(
        "bury",
        "A gives up for good while its lease is taken back; a person replays it; B takes over",
        {
            "A": does_together(bury("A")),
            "T": ONE_EXPIRY,
            "W": watches(),
            "P": does(replay("P")),
            "B": if_claimed("B", works_at_once("B")),
        },
        enqueued() + in_hand("A"),
        never_wait=frozenset({"W"}),
    ),
    Scenario(
        "drop against cancel",
        "the handler drops its job while a person cancels it and the watchdog takes it back",
        {
            "A": does_together(cancel_claimed("A")),
            "P": does_together(cancel("P")),
            "T": ONE_EXPIRY,
            "W": watches(),
            "B": if_claimed("B", works_at_once("B")),
        },
        enqueued() + in_hand("A"),
        never_wait=frozenset({"W"}),
    ),
    Scenario(
        "complete against fail",
        "two threads of one worker settle the same lease in two ways",
        {
            "A": does_together(rows("A"), completes("A")),
            "a": does_together(fail("A")),
            "T": ONE_EXPIRY,
            "W": does(reap(), promote()),
            "B": if_claimed("B", works_at_once("B")),
        },
        enqueued() + in_hand("A"),
        stops=(FENCED,),
    ),
    Scenario(
        "lost reply",
        "A's commit is under way when its worker, cut off, asks what became of it",
        {
            "A": works_quickly("A"),
            "a": does(outcome("A", "a")),
            "T": ONE_EXPIRY,
            "W": watches(),
            "B": if_claimed("B", works_at_once("B")),
        },
        enqueued() + in_hand("A"),
        follows={"a": ("A", 1)},
        never_wait=frozenset({"W"}),
    ),
    Scenario(
        "batch of failures",
        "one thread reports two failures at once, another settles the same two; the watchdog takes them back",
        {
            "A": does_together(fail_many("A")),
            "a": does_together(complete_many("A")),
            "T": ONE_EXPIRY,
            "W": does(reap(), promote()),
            "B": if_claimed("B", does(complete_many("B")), room=2),
        },
        enqueued(2) + in_hand("A", 2),
        # A and a may wait for each other when both are refused: one row counts the refusals of a lease.
        never_wait=frozenset({"W"}),
    ),
    Scenario(
        "heirs",
        "A is late; B and C both want the job that the watchdog takes back",
        {
            "A": works_quickly("A"),
            "T": ONE_EXPIRY,
            "W": does(reap(), promote()),
            "B": if_claimed("B", works_quickly("B")),
            "C": if_claimed("C", works_quickly("C")),
        },
        enqueued() + in_hand("A"),
    ),
)
