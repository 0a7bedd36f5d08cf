"""Every order of a scenario, depth first: each is played from the beginning, and the ends are checked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from faultline.simulation.order import Order, Performance
from faultline.simulation.scenario import Scenario
from faultline.simulation.stage import Stage


def orders(stage: Stage, scenario: Scenario, prefix: Sequence[str] = ()) -> Iterator[Order]:
    """Play every order that begins with `prefix`, once each."""
    path: list[str] | None = list(prefix)
    while path is not None:
        order = Performance(stage, scenario).play(path)
        yield order
        path = _next(order, len(prefix))


def _next(order: Order, fixed: int) -> list[str] | None:
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
    endings: set[str] = field(default_factory=set)
    first_broken: Order | None = None

    def count(self, order: Order) -> None:
        self.orders += 1
        self.turns += len(order.chosen)
        self.waits += order.waits
        self.refusals += order.refusals
        if order.broken:
            self.violations += 1
            self.first_broken = self.first_broken or order


class Judge:
    """Checks each ending; one that is the same in every row as an ending that held before, holds."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._sound: set[str] = set()
        self._unsound: dict[str, list[tuple[str, str]]] = {}

    def check(self, order: Order) -> None:
        """Add what is broken at this end to what was broken on the way."""
        if order.ending in self._sound:
            return
        if order.ending not in self._unsound:
            wrong = self._stage.broken()
            if not wrong:
                self._sound.add(order.ending)
                return
            self._unsound[order.ending] = wrong
        order.broken.extend(self._unsound[order.ending])


def explore(
    stage: Stage, scenario: Scenario, prefix: Sequence[str] = (), *, until_broken: bool = False
) -> Iterator[Tally]:
    """Explore a scenario; the tally so far after each order."""
    tally, judge = Tally(), Judge(stage)
    for order in orders(stage, scenario, prefix):
        judge.check(order)
        tally.count(order)
        tally.endings.add(order.ending)
        yield tally
        if until_broken and order.broken:
            return
