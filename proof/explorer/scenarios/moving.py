"""Jobs on the move between tables: promoted, retried, replayed, cancelled, rescued; two watchdogs at once."""

from proof.explorer.scenario import Scenario, VerbStop
from proof.explorer.scenarios.plays import (
    ONE_EXPIRY,
    does,
    does_together,
    if_claimed,
    in_turn,
    keeps_up,
    works,
    works_at_once,
    works_quickly,
)
from proof.explorer.scenarios.verbs import (
    bury,
    cancel,
    claim,
    enqueued,
    fail,
    in_hand,
    promote,
    reap,
    replay,
    rescue,
    retry_now,
    tick,
)

LOOKED_FOR = VerbStop("lock_job", "case place")
DUE = (*enqueued(1, ", delay => '5 s'"), tick(10).sql)
DEAD = (*enqueued(1, ", max_attempts => 1"), *in_hand("A"), bury("A").sql)
BEHIND_THE_FLOOR = (
    *enqueued(),
    "update faultline.lanes set floor = 100",
    "select setval('faultline.places', 200)",
)

SCENARIOS = (
    Scenario(
        "cancel during promote",
        "a person cancels a job that is being promoted and then claimed; it is found wherever it is",
        {
            "P": does_together(cancel("P")),
            "W": does_together(promote()),
            "A": if_claimed("A", works_quickly("A")),
            "B": if_claimed("B", works_at_once("B")),
        },
        DUE,
        stops=(LOOKED_FOR,),
        never_wait=frozenset({"W"}),
        is_quick=True,
    ),
    Scenario(
        "cancel against a worker",
        "a person cancels a running job; its worker beats, and commits or is refused",
        {
            "P": does_together(cancel("P")),
            "A": keeps_up("A", works("A")),
            "T": ONE_EXPIRY,
            "W": does(reap(), promote()),
        },
        enqueued() + in_hand("A"),
        stops=(LOOKED_FOR,),
        never_wait=frozenset({"W"}),
    ),
    Scenario(
        "retry now against complete",
        "a person retries a job that fails, is promoted, and is completed by B meanwhile",
        {
            "A": does(fail("A", "5 s")),
            "P": does_together(retry_now("P")),
            "T": does(tick(10)),
            "W": does(promote()),
            "B": if_claimed("B", works_quickly("B")),
        },
        enqueued() + in_hand("A"),
        stops=(LOOKED_FOR,),
        sees_refusals=False,
    ),
    Scenario(
        "two promoters and a person",
        "two watchdogs promote what a person retries now; one of the three moves it",
        {
            "V": does_together(promote()),
            "W": does_together(promote()),
            "P": does_together(retry_now("P")),
            "A": if_claimed("A", works_at_once("A")),
        },
        DUE,
        stops=(LOOKED_FOR,),
        never_wait=frozenset({"V", "W"}),
        sees_refusals=False,
    ),
    Scenario(
        "replay of the dead twice",
        "two people replay one dead job; it comes back once",
        {
            "P": does_together(replay("P")),
            "Q": does_together(replay("Q")),
            "A": if_claimed("A2", works_at_once("A2")),
        },
        DEAD,
        stops=(LOOKED_FOR,),
        sees_refusals=False,
        is_quick=True,
    ),
    Scenario(
        "two watchdogs",
        "two watchdogs reap and promote two expired jobs, one of which is being completed",
        {
            "V": in_turn(does_together(reap()), does(promote())),
            "W": in_turn(does_together(reap()), does_together(promote())),
            "A": works_quickly("A"),
        },
        (*enqueued(2), *in_hand("A", 2), tick().sql),
        stops=(VerbStop("reap", "if cardinality(expired) > 0"),),
        never_wait=frozenset({"V", "W"}),
    ),
    Scenario(
        "rescue",
        "a job behind its lane's floor is rescued by two, claimed, and cancelled by a person",
        {
            "W": does_together(rescue()),
            "V": does(rescue()),
            "A": in_turn(does_together(claim("A")), works_at_once("A")),
            "P": does_together(cancel("P")),
        },
        BEHIND_THE_FLOOR,
        stops=(LOOKED_FOR,),
        never_wait=frozenset({"V", "W"}),
    ),
    Scenario(
        "round after round",
        "two expiries and two rounds of the watchdog: every crash is counted once",
        {
            "A": works("A"),
            "T": does(tick(), tick()),
            "W": does(reap(), promote(), reap(), promote()),
            "B": if_claimed("B", works_at_once("B")),
        },
        enqueued() + in_hand("A"),
        never_wait=frozenset({"W"}),
    ),
)
