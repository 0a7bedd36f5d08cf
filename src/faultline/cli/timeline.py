"""A job's life as lines: each lease with its token, who held it and how long, and every refused write."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.table import Table
from rich.text import Text

from faultline.cli.tables import draw, number, toned, wide, word
from faultline.cli.wording import clock, first_line, span
from faultline.job import JobInfo, JobState, LedgerEntry, Refusal

COLUMNS = (number("token"), wide("worker"), word("from"), word("to"), number("held"), wide("outcome"))


@dataclass(frozen=True, slots=True)
class Line:
    """One lease, or one refused write, at its place in time."""

    token: int
    worker: str | None
    start: datetime
    end: datetime | None
    outcome: str
    detail: str = ""


def timeline(job: JobInfo | None, entries: Sequence[LedgerEntry], refusals: Sequence[Refusal]) -> list[Line]:
    """The lines in the order in which things happened; a lease that is still held comes with no end."""
    lines = [_lease(entry) for entry in entries]
    if job and job.state == JobState.RUNNING and job.token and job.claimed_at:
        lines.append(
            Line(
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


def _lease(entry: LedgerEntry) -> Line:
    # A job that was cancelled before anybody claimed it has an entry without a lease.
    start = entry.claimed_at or entry.settled_at
    return Line(entry.token, entry.worker, start, entry.settled_at, entry.outcome, first_line(entry.error))


def _refused(refusal: Refusal) -> Line:
    newer = f": token {refusal.current_token} is newer" if refusal.reason == "token_mismatch" else ""
    times = f", {refusal.times} times" if refusal.times > 1 else ""
    return Line(
        refusal.token,
        refusal.worker,
        refusal.first_at,
        None,
        "refused",
        f"a late write, {refusal.reason}{newer}{times}",
    )


def drawn(lines: Sequence[Line]) -> Table | Text:
    """The lines as a table, refusals in red."""
    return draw(COLUMNS, (_row(line) for line in lines), "nobody has claimed it yet")


def _row(line: Line) -> tuple[object, ...]:
    held = span((line.end - line.start).total_seconds()) if line.end else ""
    told = Text.assemble(toned(line.outcome), f" {line.detail}" if line.detail else "", overflow="fold")
    if line.outcome == "refused":
        told.stylize("bold red")
    return line.token, line.worker, clock(line.start), clock(line.end) if line.end else "", held, told
