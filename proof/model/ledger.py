"""Histories out of a real database: every job's ledger, where it stands now, and the effects of its work."""

from collections.abc import Iterator
from typing import Any, Final

import psycopg
from psycopg.rows import namedtuple_row
from psycopg.sql import SQL, Composed, Identifier

from proof.model.history import Effect, Entry, JobHistory, Row

# Ordered by the moment of the end, not by token: the check must find out that tokens grow.
ENTRIES: Final = """
select entry.job_id, entry.outcome::text, entry.token, entry.claim, entry.attempt::int, entry.crashes::int,
       entry.claimed_at, entry.settled_at, entry.max_attempts::int, lane.keep <> 'nothing' as kept
from faultline.ledger as entry
join faultline.lanes as lane on lane.id = entry.lane
where %(jobs)s::bigint[] is null or entry.job_id = any (%(jobs)s)
order by entry.job_id, case when %(clock)s then entry.settled_at end, entry.token, entry.slot = 0
"""

ROWS: Final = """
select job.id as job_id, case when job.claim is null then 'queued' else 'running' end as state,
       job.token, job.claim, job.attempt::int, job.crashes::int, job.max_attempts::int,
       lane.keep <> 'nothing' as kept
from faultline.active as job join faultline.lanes as lane on lane.id = job.lane
where %(jobs)s::bigint[] is null or job.id = any (%(jobs)s)
union all
select job.id, 'later', job.token, null, job.attempt, job.crashes, job.max_attempts, lane.keep <> 'nothing'
from faultline.later as job join faultline.lanes as lane on lane.id = job.lane
where %(jobs)s::bigint[] is null or job.id = any (%(jobs)s)
union all
select job.id, 'dead', job.token, null, job.attempt, job.crashes, job.max_attempts, lane.keep <> 'nothing'
from faultline.dead as job join faultline.lanes as lane on lane.id = job.lane
where %(jobs)s::bigint[] is null or job.id = any (%(jobs)s)
order by 1
"""


def histories(
    conn: psycopg.Connection[Any],
    *,
    jobs: list[int] | None = None,
    effects: str | None = None,
    clock: bool = True,
) -> Iterator[JobHistory]:
    """The history of every job that left a trace, or of these jobs, in one snapshot of an idle connection.

    `effects` names a table of the work's own rows, with columns job_id, token and wrote; then every job told
    is held to it. `clock=False` is for runs in which the server's clock was moved: moments tell nothing then.
    """
    asked = {"jobs": jobs, "clock": clock}
    with conn.transaction(), conn.cursor(row_factory=namedtuple_row) as cursor:
        # One snapshot for all three: a job that moves between two looks would be in two places, or in none.
        cursor.execute("set transaction isolation level repeatable read")
        entries = cursor.execute(ENTRIES, asked).fetchall()
        rows = cursor.execute(ROWS, asked).fetchall()
        wrote = cursor.execute(_effects(effects)).fetchall() if effects else []
    yield from _gathered(entries, rows, wrote if effects else None, clock)


def _effects(table: str) -> Composed:
    return SQL("select job_id, token, wrote from {}").format(Identifier(*table.split(".")))


def _gathered(
    entries: list[Any], rows: list[Any], wrote: list[Any] | None, clock: bool
) -> Iterator[JobHistory]:
    """One history a job, in the order of their ids."""
    by_job: dict[int, tuple[list[Any], list[Any], list[Any]]] = {}
    for place, found in enumerate((entries, rows, wrote or [])):
        for line in found:
            by_job.setdefault(line.job_id, ([], [], []))[place].append(line)
    for job_id, (ended, standing, committed) in sorted(by_job.items()):
        if not ended and not standing:
            continue
        facts = (ended or standing)[-1]
        yield JobHistory(
            job_id=job_id,
            max_attempts=facts.max_attempts,
            entries=tuple(_entry(line, clock) for line in ended),
            rows=tuple(_row(line) for line in standing),
            effects=None if wrote is None else tuple(Effect(line.wrote, line.token) for line in committed),
            success_kept=facts.kept,
        )


def _entry(line: Any, clock: bool) -> Entry:
    moments = (line.claimed_at, line.settled_at) if clock else (0, 0)
    return Entry(line.outcome, line.token, line.claim, line.attempt, line.crashes, *moments)


def _row(line: Any) -> Row:
    return Row(line.state, line.token, line.claim, line.attempt, line.crashes)
