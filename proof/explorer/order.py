"""Play one order: give the sessions their turns one at a time, as a list of names says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from proof.explorer.scenario import Scenario
from proof.explorer.session import ExplorerSession, SessionState
from proof.explorer.stage import ExplorerDatabase
from proof.explorer.step import Play, Step, StepReply


class Diverged(RuntimeError):
    """A path that was played before went another way this time."""


Choose = Callable[[Sequence[str]], str]
"""Chooses the next session, of those that can go on."""


def first(could: Sequence[str]) -> str:
    return could[0]


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """One thing that happened: whose turn, what was sent, and what came of it."""

    who: str
    label: str
    statements: tuple[str, ...] = ()
    came_of_it: StepReply | SessionState = SessionState.READY
    stop: int = 0
    """The stop it walked on from, when nothing was sent."""


@dataclass
class Interleaving:
    """One interleaving as it was played."""

    chosen: list[str] = field(default_factory=list)
    could: list[tuple[str, ...]] = field(default_factory=list)
    turns: list[SessionTurn] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)
    waits: int = 0
    refusals: int = 0
    ending: str = ""
    raced: bool = False
    """Whether two sessions waited when locks were let go: the explorer cannot choose the quicker one."""

    def breaks(self, invariant: str) -> bool:
        return any(name == invariant for name, _ in self.broken)


@dataclass
class _Player:
    """A session and the play it is in."""

    session: ExplorerSession
    play: Play
    step: Step | None = None
    standing: SessionState = SessionState.READY
    taken: int = 0

    def go_on(self, answer: StepReply | None) -> None:
        """Choose its next step, by the last answer."""
        try:
            self.step = next(self.play) if answer is None else self.play.send(answer)
            self.standing = SessionState.READY
        except StopIteration:
            self.step, self.standing = None, SessionState.OVER


class InterleavingPlayer:
    """The playing of one order of a scenario on a stage."""

    def __init__(self, stage: ExplorerDatabase, scenario: Scenario) -> None:
        self._stage, self._scenario, self.order = stage, scenario, Interleaving()
        self._players = {
            who: _Player(stage.session(who), program()) for who, program in scenario.sessions.items()
        }

    def play(self, path: Sequence[str], choose: Choose = first) -> Interleaving:
        """Play `path`, and after it each time one chosen of the sessions that can go on."""
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
        """The sessions that can go on, in the scenario's own order."""
        return tuple(
            who
            for who, player in self._players.items()
            if player.standing in (SessionState.READY, SessionState.STOPPED) and self._may_begin(who)
        )

    def _may_begin(self, who: str) -> bool:
        leader, turns = self._scenario.follows.get(who, (who, 0))
        ahead = self._players[leader]
        return ahead.taken >= turns or ahead.standing is SessionState.OVER

    def _give_turn(self, who: str) -> None:
        player = self._players[who]
        player.taken += 1
        if player.standing is SessionState.STOPPED:
            number = player.session.stop
            self._stage.let_go(player.session)
            self._settle(who, SessionTurn(who, "goes on", stop=number))
        else:
            assert player.step is not None
            player.session.send(player.step.statements)
            self._settle(who, SessionTurn(who, player.step.label, player.step.statements))
        if player.session.is_idle:
            self._look_after_the_waiting()

    def _settle(self, who: str, turn: SessionTurn, *, ask_first: bool = False) -> bool:
        """Wait until the session has answered, stopped or met a lock; True if it moved on."""
        player = self._players[who]
        was_blocked = player.standing is SessionState.BLOCKED
        came = player.session.settle(lambda: self._stage.is_blocked(who), ask_first=ask_first)
        if isinstance(came, StepReply):
            self._tell(turn, came)
            self._answered(player, came)
        else:
            player.standing = came
            if came is SessionState.BLOCKED and was_blocked:
                return False
            self._tell(turn, came)
            self._met_a_lock(who, came)
        return True

    def _answered(self, player: _Player, answer: StepReply) -> None:
        step = player.step
        assert step is not None
        self.order.refusals += answer.is_refusal
        if answer.error and answer.error not in step.tolerates:
            self.order.broken.append(
                _unexpected(answer, f"{player.session.who} {step.label}: {answer.message}")
            )
        if player.session.has_failed or (answer.error and step.afterwards):
            clean_up = tuple(filter(None, ("rollback" if player.session.has_failed else "", step.afterwards)))
            self._tell(
                SessionTurn(player.session.who, "stops there", clean_up), player.session.run_all(clean_up)
            )
        player.go_on(answer)

    def _met_a_lock(self, who: str, came: SessionState) -> None:
        if came is SessionState.BLOCKED:
            self.order.waits += 1
            if who in self._scenario.never_wait:
                self.order.broken.append(("Drains", f"{who} waits for a lock, which it must never do"))

    def _look_after_the_waiting(self) -> None:
        """Locks were let go: each session that waited for them goes on until it answers or waits again."""
        moved = -1
        while moved:
            waiting = [who for who, one in self._players.items() if one.standing is SessionState.BLOCKED]
            moved = sum(
                self._settle(who, SessionTurn(who, "is let through"), ask_first=True) for who in waiting
            )
            self.order.raced |= moved > 0 and len(waiting) > 1

    def _tell(self, turn: SessionTurn, came_of_it: StepReply | SessionState) -> None:
        self.order.turns.append(SessionTurn(turn.who, turn.label, turn.statements, came_of_it, turn.stop))

    def _judge(self) -> None:
        if waiting := [who for who, one in self._players.items() if one.standing is SessionState.BLOCKED]:
            self.order.broken.append(("Drains", f"{' and '.join(waiting)} wait for each other without end"))
            self._stage.break_off()
        drained = self._stage.drain()
        if drained.error:
            self.order.broken.append(("Drains", f"the drain stopped with {drained.error}: {drained.message}"))
        else:
            self.order.ending = str(drained.rows[0][0])


def _unexpected(answer: StepReply, what: str) -> tuple[str, str]:
    name = "Drains" if answer.error in ("40P01", "55P03") else "NothingLost"
    return name, f"{what} ({answer.error})"
