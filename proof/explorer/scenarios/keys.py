"""Keys: two enqueues of one key, a key whose job ends, a key whose window lapses."""

from proof.explorer.scenario import Scenario, VerbStop
from proof.explorer.scenarios.plays import does, does_together, if_claimed, works_at_once, works_quickly
from proof.explorer.scenarios.verbs import (
    bury,
    claim,
    complete_at_once,
    enqueue,
    enqueue_queued,
    in_hand,
    replay,
    tick,
)

TAKEN = VerbStop("take_key", "select * into held")
LAPSED = VerbStop("take_key", "if held.until < moment")
FREE = VerbStop("take_queued", "if rule = 'while_queued' then")
KEYED = (enqueue("setup", "k").sql,)
ENDED = (*KEYED, *in_hand("A"), complete_at_once("A").sql)
DEAD = (*KEYED, *in_hand("A"), bury("A").sql)

SCENARIOS = (
    Scenario(
        "two enqueues of one key",
        "two clients enqueue one key in open transactions while a worker claims; there is one job",
        {
            "E": does_together(enqueue("E", "k")),
            "F": does_together(enqueue("F", "k")),
            "A": if_claimed("A", works_at_once("A")),
        },
        stops=(TAKEN,),
        sees_refusals=False,
        is_quick=True,
    ),
    Scenario(
        "a key and its completion",
        "a key is enqueued again while its job is being completed, within its window and after it",
        {
            "A": works_quickly("A"),
            "E": does_together(enqueue("E", "k")),
            "F": does(enqueue("F", "k")),
            "T": does(tick()),
        },
        KEYED + in_hand("A"),
        stops=(TAKEN, LAPSED),
        sees_refusals=False,
    ),
    Scenario(
        "a key that lapses",
        "two clients find a key whose window has just lapsed; one of them makes the new job",
        {
            "E": does_together(enqueue("E", "k")),
            "F": does_together(enqueue("F", "k")),
            "T": does(tick()),
        },
        ENDED,
        stops=(LAPSED,),
        sees_refusals=False,
        is_quick=True,
    ),
    Scenario(
        "a dead job's key",
        "a dead job is replayed while its key is enqueued again and its window lapses",
        {
            "P": does_together(replay("P")),
            "E": does_together(enqueue("E", "k")),
            "T": does(tick()),
            "B": if_claimed("B", works_at_once("B")),
        },
        DEAD,
        stops=(LAPSED,),
        sees_refusals=False,
    ),
    Scenario(
        "enqueue while queued against a claim",
        "two producers enqueue a key that is unique while queued, one in an open transaction, while a worker "
        "claims and completes the job that waits; a claim of each producer's job follows its commit",
        {
            "E": does_together(enqueue_queued("E", "k")),
            "F": does(enqueue_queued("F", "k")),
            "A": if_claimed("A", works_at_once("A")),
        },
        (enqueue_queued("setup", "k").sql,),
        stops=(FREE,),
        sees_refusals=False,
        is_quick=True,
    ),
    Scenario(
        "keys and claims",
        "two clients enqueue the same two keys, one of them in one transaction, while two workers claim",
        {
            "E": does_together(enqueue("E", "k"), enqueue("E", "l")),
            "F": does(enqueue("F", "k"), enqueue("F", "l")),
            "A": does_together(claim("A")),
            "B": if_claimed("B", works_at_once("B")),
        },
        sees_refusals=False,
    ),
)
