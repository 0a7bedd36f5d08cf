"""What workers, watchdogs and clocks do: the plays that scenarios put together."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from proof.explorer.scenarios.verbs import (
    as_transaction,
    beat,
    claim,
    complete,
    complete_at_once,
    promote,
    reap,
    rows,
    tick,
)
from proof.explorer.step import Play, Program, Step

ROLLBACK = Step("is killed", "rollback")


def does(*steps: Step) -> Program:
    """Each step a transaction of its own, whatever comes of it."""

    def play() -> Play:
        for step in steps:
            _ = yield step  # whatever comes of it

    return play


def does_together(*steps: Step) -> Program:
    """All steps in one transaction."""
    return lambda: as_transaction(*steps)


def in_turn(*programs: Program) -> Program:
    """One program after the other."""

    def play() -> Play:
        for program in programs:
            yield from program()

    return play


def if_claimed(hand: str, then: Program, *, room: int = 1) -> Program:
    """Claim, and go on only with something in hand."""
    claims = claim(hand, room)

    def play() -> Play:
        if (yield claims):
            yield from then()

    return play


def works(hand: str) -> Program:
    """A job in hand: its rows and its success in one transaction, statement by statement."""
    return does_together(rows(hand), complete(hand))


def works_quickly(hand: str) -> Program:
    """The same, in one message and a commit."""
    return does_together(complete_at_once(hand))


def works_at_once(hand: str) -> Program:
    """The same, in one message that commits by itself."""
    return does(complete_at_once(hand))


def keeps_up(hand: str, then: Program) -> Program:
    """Beat, and go on only if the lease is held."""
    beats = beat(hand)

    def play() -> Play:
        answer = yield beats
        if answer.rows and answer.rows[0][0] in ("held", "busy"):
            yield from then()

    return play


def is_killed(hand: str) -> Program:
    """A worker that dies between its completion and the commit: the server rolls back."""
    writes, completes = replace(rows(hand), opens=True), complete(hand)

    def play() -> Play:
        yield writes
        if not (yield completes).error:
            yield ROLLBACK

    return play


def time_passes(seconds: Sequence[int]) -> Program:
    return does(*(tick(each) for each in seconds))


def watches() -> Program:
    """A watchdog's round: reap in a transaction that others can meet, then promote."""
    return in_turn(does_together(reap()), does(promote()))


ONE_EXPIRY: Callable[[], Play] = time_passes([20])
