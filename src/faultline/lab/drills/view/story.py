"""The story of one job as the database has it: which worker held which token when, and the faults."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import psycopg

from faultline.lab.drills.stage.drill_database import source

ENDS: Final = {
    "succeeded": "COMMITS: its rows, the success and the ledger entry together",
    "expired": "loses the job: the lease of token {token} ran out",
    "failed": "fails, and the job is to be tried again",
    "released": "gives the job back",
    "snoozed": "puts the job off",
    "dead": "gives the job up",
    "cancelled": "has nothing left to do: the job was cancelled",
}
SEEN: Final = {
    "frozen": "is FROZEN (SIGSTOP) in its commit, and so is its pacemaker",
    "continued": "WAKES, and sends its commit as if nothing had happened",
    "killed": "is KILLED (SIGKILL) in mid-job, its rows not committed",
    "gone": "is gone, and so is its pacemaker",
    "lease_ends": "has a lease that runs out now: no heartbeat renewed it",
    "at_work": "is still at work",
}
MARKS: Final = {
    "claimed": "●", "resumed": "●", "promoted": "●", "key taken": "●", "frozen": "■", "killed": "■",
    "stalled": "■", "halted": "■", "succeeded": "✓", "has its answers": "✓", "refused": "✗",
    "lease_ends": "╌",
}  # fmt: skip
"""What is marked on the lane of the process that it happened to; the rest is only told."""


@dataclass(frozen=True, slots=True)
class StoryMoment:
    """One line of the story."""

    at: datetime
    who: str
    what: str
    token: int | None = None
    note: str | None = None

    @property
    def words(self) -> str:
        """What happened, to be read after the name of who it happened to."""
        match self.what:
            case "claimed":
                return f"claims the job: token {self.token}"
            case "refused":
                return f"is REFUSED: token {self.token} {self._why_refused()}"
            case end if end in ENDS:
                return ENDS[end].format(token=self.token)
            case seen:
                return self.note or SEEN.get(seen, seen)

    def _why_refused(self) -> str:
        reason, _, current = (self.note or "").partition("/")
        if reason == "gone" and current == str(self.token):
            return f"without its claim id ({reason})"
        return f"({reason}); the job's token is {current}"


def read(conn: psycopg.Connection[Any], job: int) -> list[StoryMoment]:
    """Every moment of a job, by the database's clock."""
    return [StoryMoment(*row) for row in conn.execute(source("story"), {"job": job}).fetchall()]
