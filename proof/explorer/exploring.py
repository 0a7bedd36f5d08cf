"""Every order of a scenario, depth first: each is played from the beginning, and the ends are checked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random

from proof.explorer.order import Diverged, Interleaving, InterleavingPlayer
from proof.explorer.scenario import Scenario
from proof.explorer.stage import ExplorerDatabase

WALKS = 2_000
"""How many orders a hunt plays at random before it plays them all."""

TRIES = 5


def orders(stage: ExplorerDatabase, scenario: Scenario, prefix: Sequence[str] = ()) -> Iterator[Interleaving]:
    """Play every order that begins with `prefix`, once each."""
    path: list[str] | None = list(prefix)
    while path is not None:
        order = _play(stage, scenario, path)
        yield order
        path = _next(order, len(prefix))


def _play(stage: ExplorerDatabase, scenario: Scenario, path: Sequence[str]) -> Interleaving:
    """Play a path that was possible before. Two sessions that wait for the same commit wake together, and
    PostgreSQL decides which is quicker: after another outcome, play it once more."""
    for _ in range(TRIES):
        try:
            return InterleavingPlayer(stage, scenario).play(path)
        except Diverged:
            stage.break_off()
    raise Diverged(f"{scenario.name}: the path {' '.join(path)} cannot be played again")


def wander(stage: ExplorerDatabase, scenario: Scenario, seed: int) -> Iterator[Interleaving]:
    """Play some orders at random, the same for the same seed."""
    chance = Random(seed)
    for _ in range(WALKS):
        yield InterleavingPlayer(stage, scenario).play((), chance.choice)


def _next(order: Interleaving, fixed: int) -> list[str] | None:
    """The path that differs from this one as late as it can."""
    for depth in reversed(range(fixed, len(order.chosen))):
        rest = order.could[depth][order.could[depth].index(order.chosen[depth]) + 1 :]
        if rest:
            return [*order.chosen[:depth], rest[0]]
    return None


@dataclass
class Tally:
    """What was seen over many orders."""

    orders: int = 0
    turns: int = 0
    waits: int = 0
    refusals: int = 0
    violations: int = 0
    raced: int = 0
    endings: set[str] = field(default_factory=set)
    first_broken: Interleaving | None = None

    def count(self, order: Interleaving) -> None:
        self.orders += 1
        self.turns += len(order.chosen)
        self.waits += order.waits
        self.refusals += order.refusals
        self.raced += order.raced
        self.endings.add(order.ending)
        if order.broken:
            self.violations += 1
            self.first_broken = self.first_broken or order


class Judge:
    """Checks each ending; an ending with the same rows as an earlier one has the same verdict."""

    def __init__(self, stage: ExplorerDatabase) -> None:
        self._stage = stage
        self._known: dict[str, list[tuple[str, str]]] = {}

    def check(self, order: Interleaving) -> None:
        """Add what is broken at this end to what was broken on the way."""
        if not order.ending:  # the drain itself failed: two such endings are never known to be the same
            order.broken.extend(self._stage.broken())
            return
        if order.ending not in self._known:
            self._known[order.ending] = self._stage.broken()
        order.broken.extend(self._known[order.ending])


def explore(stage: ExplorerDatabase, scenario: Scenario, prefix: Sequence[str] = ()) -> Iterator[Tally]:
    """Explore a scenario; the tally so far after each order."""
    tally, judge = Tally(), Judge(stage)
    for order in orders(stage, scenario, prefix):
        judge.check(order)
        tally.count(order)
        yield tally


def hunt(stage: ExplorerDatabase, scenario: Scenario, invariant: str, seed: int = 0) -> Iterator[Tally]:
    """Play until an order breaks this invariant: at random first, which finds most things soon, then all.

    One that can be played again is better than one in which two raced.
    """
    tally, judge = Tally(), Judge(stage)
    first: Interleaving | None = None
    for order in chain(wander(stage, scenario, seed), orders(stage, scenario)):
        judge.check(order)
        tally.count(order)
        if order.breaks(invariant) and (first is None or not order.raced):
            first = order
            tally.first_broken = order
        yield tally
        if first is not None and not first.raced:
            return
