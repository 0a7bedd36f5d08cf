"""An order in words: numbered steps, as a person reads them."""

from collections.abc import Iterator

from faultline.simulation.order import Order, Turn
from faultline.simulation.session import Standing
from faultline.simulation.step import Answer


def told(order: Order) -> Iterator[str]:
    """The order step by step, and then what is wrong."""
    for number, turn in enumerate(order.turns, 1):
        yield f"{number:3}. {turn.who:2} {turn.label}{_outcome(turn)}"
    for invariant, wrong in order.broken:
        yield f"     {invariant}: {wrong}"


def _outcome(turn: Turn) -> str:
    came = turn.came_of_it
    if came is Standing.BLOCKED:
        return " ... and waits"
    if came is Standing.STOPPED:
        return " ... and is left standing half way"
    return f" -> {_answer(came)}" if isinstance(came, Answer) else ""


def _answer(answer: Answer) -> str:
    if answer.error:
        return f"{answer.error} {answer.message}"
    return "; ".join(" ".join(cell or "null" for cell in row) for row in answer.rows if any(row)) or "done"
