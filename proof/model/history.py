"""What the database tells of one job: its ledger, its row, the effects of its work."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger: a lease and how it ended. `claim` is None when no worker held the job."""

    outcome: str
    token: int
    claim: Hashable | None
    attempt: int
    crashes: int
    claimed_at: Any = 0
    settled_at: Any = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A job that has not ended, as its row has it: queued, later, running or dead."""

    state: str
    token: int = 0
    claim: Hashable | None = None
    attempt: int = 0
    crashes: int = 0


@dataclass(frozen=True, slots=True)
class Effect:
    """One row that a job's work committed: which of its effects, under which token."""

    name: str
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """All that is known of one job, in the order in which it happened.

    `rows` is where it stands now: one row, or none when it ended. `effects` is None for a job whose work
    leaves nothing to count; `success_kept` is False in a queue that keeps nothing of successes.
    """

    job_id: int
    max_attempts: int
    entries: tuple[Entry, ...] = ()
    rows: tuple[Row, ...] = ()
    effects: tuple[Effect, ...] | None = None
    success_kept: bool = True
