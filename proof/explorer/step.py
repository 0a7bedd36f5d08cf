"""A step of a session, and its answer: the values that the explorer passes about."""

from collections.abc import Callable, Generator
from dataclasses import dataclass

LEASE_LOST = "LS001"
WRONG_STATE = "LS004"


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of a session.

    `opens` puts a BEGIN before it, in the same message: a step of its own would multiply the orders and
    change nothing. `tolerates` are the errors that are an answer; any other is a violation. `afterwards` is
    what the session does when it was refused. Its transaction has ended by then, so the moment is not seen.
    """

    label: str
    sql: str
    opens: bool = False
    tolerates: frozenset[str] = frozenset({LEASE_LOST})
    afterwards: str = ""

    @property
    def statements(self) -> tuple[str, ...]:
        """What is sent, in one message."""
        return ("begin", self.sql) if self.opens else (self.sql,)


@dataclass(frozen=True, slots=True)
class StepReply:
    """What the server answered to a step: the rows of its last statement, or an error."""

    rows: tuple[tuple[str | None, ...], ...] = ()
    error: str = ""
    message: str = ""

    def __bool__(self) -> bool:
        """Whether there is something to go on with."""
        return not self.error and bool(self.rows)

    @property
    def is_refusal(self) -> bool:
        """Whether a lease was refused."""
        return self.error == LEASE_LOST or any(
            cell in ("refused", "lost") for row in self.rows for cell in row
        )


Play = Generator[Step, StepReply, None]
"""What a session does, step by step; it may choose its next step by the last answer."""

Program = Callable[[], Play]

COMMIT = Step("commits", "commit")
