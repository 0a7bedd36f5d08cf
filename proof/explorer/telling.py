"""An order in words: numbered steps, as a person reads them."""

from collections.abc import Iterator

from proof.explorer.order import Interleaving, SessionTurn
from proof.explorer.session import SessionState
from proof.explorer.step import StepReply


def told(order: Interleaving) -> Iterator[str]:
    """The order step by step, and then what is wrong."""
    for number, turn in enumerate(order.turns, 1):
        yield f"{number:3}. {turn.who:2} {turn.label}{_outcome(turn)}"
    for invariant, wrong in order.broken:
        yield f"     {invariant}: {wrong}"


def _outcome(turn: SessionTurn) -> str:
    came = turn.came_of_it
    if came is SessionState.BLOCKED:
        return " ... and waits"
    if came is SessionState.STOPPED:
        return " ... and is left standing half way"
    return f" -> {_answer(came)}" if isinstance(came, StepReply) else ""


def _answer(answer: StepReply) -> str:
    if answer.error:
        return f"{answer.error} {answer.message}"
    return "; ".join(" ".join(cell or "null" for cell in row) for row in answer.rows if any(row)) or "done"
