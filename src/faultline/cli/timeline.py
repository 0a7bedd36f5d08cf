"""The history of a job as lines: each lease with its token, holder and length, and every refused write."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.table import Table
from rich.text import Text

from faultline.cli.format import clock, first_line, span
from faultline.cli.tables import draw, number, toned, wide, word
from faultline.job import JobInfo, JobState, LedgerEntry, Refusal

COLUMNS = (number("token"), wide("worker"), word("from"), word("to"), number("held"), wide("outcome"))


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """One lease, or one refused write, at its place in time."""

    token: int
    worker: str | None
    start: datetime
    end: datetime | None
    outcome: str
    detail: str = ""


def timeline(
    job: JobInfo | None, entries: Sequence[LedgerEntry], refusals: Sequence[Refusal]
) -> list[TimelineLine]:
    """The lines in the order of their times; a lease that is still held has no end."""
    lines = [_lease(entry) for entry in entries]
    if job and job.state == JobState.RUNNING and job.token and job.claimed_at:
        lines.append(
            TimelineLine(
                job.token,
                job.worker,
                job.claimed_at,
                None,
                "running",
                f"leased until {clock(job.lease_until)}",
            )
        )
    lines += [_refused(refusal) for refusal in refusals]
    return sorted(lines, key=lambda line: (line.start, line.token))


def _lease(entry: LedgerEntry) -> TimelineLine:
    # A job that was cancelled before its first claim has an entry without a lease.
    start = entry.claimed_at or entry.settled_at
    return TimelineLine(
        entry.token, entry.worker, start, entry.settled_at, entry.outcome, first_line(entry.error)
    )


def _refused(refusal: Refusal) -> TimelineLine:
    newer = f": token {refusal.current_token} is newer" if refusal.reason == "token_mismatch" else ""
    times = f", {refusal.times} times" if refusal.times > 1 else ""
    return TimelineLine(
        refusal.token,
        refusal.worker,
        refusal.first_at,
        None,
        "refused",
        f"a late write, {refusal.reason}{newer}{times}",
    )


def drawn(lines: Sequence[TimelineLine]) -> Table | Text:
    """The lines as a table, refusals in red."""
    return draw(COLUMNS, (_row(line) for line in lines), "no worker has claimed it yet")


def _row(line: TimelineLine) -> tuple[object, ...]:
    held = span((line.end - line.start).total_seconds()) if line.end else ""
    told = Text.assemble(toned(line.outcome), f" {line.detail}" if line.detail else "", overflow="fold")
    if line.outcome == "refused":
        told.stylize("bold red")
    return line.token, line.worker, clock(line.start), clock(line.end) if line.end else "", held, told
