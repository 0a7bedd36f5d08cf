"""Play one order: give the sessions their turns one at a time, as a list of names says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from faultline.simulation.scenario import Scenario
from faultline.simulation.session import Session, Standing
from faultline.simulation.stage import Stage
from faultline.simulation.step import Answer, Play, Step


class Diverged(RuntimeError):
    """A path that was played before went another way this time."""


Choose = Callable[[Sequence[str]], str]
"""Who goes next, of those who can."""


def first(could: Sequence[str]) -> str:
    return could[0]


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that happened: whose turn, what was sent, and what came of it."""

    who: str
    label: str
    statements: tuple[str, ...] = ()
    came_of_it: Answer | Standing = Standing.READY
    stop: int = 0
    """The stop it walked on from, when nothing was sent."""


@dataclass
class Order:
    """One interleaving as it was played."""

    chosen: list[str] = field(default_factory=list)
    could: list[tuple[str, ...]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)
    waits: int = 0
    refusals: int = 0
    ending: str = ""
    raced: bool = False
    """Whether two waited when locks were let go: which of them was quicker is not ours to choose."""

    def breaks(self, invariant: str) -> bool:
        return any(name == invariant for name, _ in self.broken)


@dataclass
class _Player:
    """A session and the play it is in."""

    session: Session
    play: Play
    step: Step | None = None
    standing: Standing = Standing.READY
    taken: int = 0

    def go_on(self, answer: Answer | None) -> None:
        """Find out what it does next, by the last answer."""
        try:
            self.step = next(self.play) if answer is None else self.play.send(answer)
            self.standing = Standing.READY
        except StopIteration:
            self.step, self.standing = None, Standing.OVER


class Performance:
    """The playing of one order of a scenario on a stage."""

    def __init__(self, stage: Stage, scenario: Scenario) -> None:
        self._stage, self._scenario, self.order = stage, scenario, Order()
        self._players = {
            who: _Player(stage.session(who), program()) for who, program in scenario.sessions.items()
        }

    def play(self, path: Sequence[str], choose: Choose = first) -> Order:
        """Play `path`, and after it whoever is chosen of those who can."""
        self._stage.begin(self._scenario.setup)
        for player in self._players.values():
            player.go_on(None)
        while could := self._could():
            depth = len(self.order.chosen)
            who = path[depth] if depth < len(path) else choose(could)
            if who not in could:
                raise Diverged(f"turn {depth}: {who} cannot go on, though it could before")
            self.order.chosen.append(who)
            self.order.could.append(could)
            self._give_turn(who)
        self._judge()
        return self.order

    def _could(self) -> tuple[str, ...]:
        """Who can go on, in the scenario's own order."""
        return tuple(
            who
            for who, player in self._players.items()
            if player.standing in (Standing.READY, Standing.STOPPED) and self._may_begin(who)
        )

    def _may_begin(self, who: str) -> bool:
        leader, turns = self._scenario.follows.get(who, (who, 0))
        ahead = self._players[leader]
        return ahead.taken >= turns or ahead.standing is Standing.OVER

    def _give_turn(self, who: str) -> None:
        player = self._players[who]
        player.taken += 1
        if player.standing is Standing.STOPPED:
            number = player.session.stop
            self._stage.let_go(player.session)
            self._settle(who, Turn(who, "goes on", stop=number))
        else:
            assert player.step is not None
            player.session.send(player.step.statements)
            self._settle(who, Turn(who, player.step.label, player.step.statements))
        if player.session.is_idle:
            self._look_after_the_waiting()

    def _settle(self, who: str, turn: Turn, *, ask_first: bool = False) -> bool:
        """Wait until the session has answered, stopped or met a lock; whether it got anywhere."""
        player = self._players[who]
        was_blocked = player.standing is Standing.BLOCKED
        came = player.session.settle(lambda: self._stage.is_blocked(who), ask_first=ask_first)
        if isinstance(came, Answer):
            self._tell(turn, came)
            self._answered(player, came)
        else:
            player.standing = came
            if came is Standing.BLOCKED and was_blocked:
                return False
            self._tell(turn, came)
            self._met_a_lock(who, came)
        return True

    def _answered(self, player: _Player, answer: Answer) -> None:
        step = player.step
        assert step is not None
        self.order.refusals += answer.is_refusal
        if answer.error and answer.error not in step.tolerates:
            self.order.broken.append(
                _unexpected(answer, f"{player.session.who} {step.label}: {answer.message}")
            )
        if player.session.has_failed or (answer.error and step.afterwards):
            clean_up = tuple(filter(None, ("rollback" if player.session.has_failed else "", step.afterwards)))
            self._tell(Turn(player.session.who, "stops there", clean_up), player.session.run_all(clean_up))
        player.go_on(answer)

    def _met_a_lock(self, who: str, came: Standing) -> None:
        if came is Standing.BLOCKED:
            self.order.waits += 1
            if who in self._scenario.never_wait:
                self.order.broken.append(("Drains", f"{who} waits for a lock, which it must never do"))

    def _look_after_the_waiting(self) -> None:
        """Locks were let go: whoever waited for them goes on until it answers or waits again."""
        moved = -1
        while moved:
            waiting = [who for who, one in self._players.items() if one.standing is Standing.BLOCKED]
            moved = sum(self._settle(who, Turn(who, "is let through"), ask_first=True) for who in waiting)
            self.order.raced |= moved > 0 and len(waiting) > 1

    def _tell(self, turn: Turn, came_of_it: Answer | Standing) -> None:
        self.order.turns.append(Turn(turn.who, turn.label, turn.statements, came_of_it, turn.stop))

    def _judge(self) -> None:
        if waiting := [who for who, one in self._players.items() if one.standing is Standing.BLOCKED]:
            self.order.broken.append(("Drains", f"{' and '.join(waiting)} wait for each other for ever"))
            self._stage.break_off()
        drained = self._stage.drain()
        if drained.error:
            self.order.broken.append(("Drains", f"the drain stopped with {drained.error}: {drained.message}"))
        else:
            self.order.ending = str(drained.rows[0][0])


def _unexpected(answer: Answer, what: str) -> tuple[str, str]:
    name = "Drains" if answer.error in ("40P01", "55P03") else "NothingLost"
    return name, f"{what} ({answer.error})"
