"""`faultline jobs show`: one job with its timeline."""

import json
from typing import Any, NamedTuple

import click
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from faultline.bounds import counted
from faultline.cli import timeline
from faultline.cli.documents import entry_document, job_document, refusal_document
from faultline.cli.format import ago, clock, safe
from faultline.cli.options import JOB_ID, CliCommand, told
from faultline.cli.tables import toned
from faultline.cli.terminal import Terminal
from faultline.client.handle import found
from faultline.job import JobInfo, JobState, LedgerEntry, Refusal
from faultline.schedules import Occurrence
from faultline.store import calls
from faultline.store.rows import WaitsFor

FOLD_CHARS = 1_200
FOLD_LINES = 16


@click.command(cls=CliCommand)
@click.argument("job_id", type=JOB_ID, metavar="ID")
@click.option("--full", is_flag=True, help="Unfold long args, results and errors.")
@told
def command(terminal: Terminal, job_id: int, full: bool) -> None:
    """Show a job: each lease with its token and how it ended, refused writes in red, args and result."""
    with terminal.database() as session:
        job = found(session.run(calls.get(job_id)), job_id)
        entries = session.run(calls.history(job_id))
        refusals = session.run(calls.refusals(job_id))
        waits = session.run(calls.waits_for(job_id)) if job.state is JobState.QUEUED else None
        made_for = session.run(calls.occurrence_of(job_id))
    document = {
        **job_document(job),
        "schedule": [{"name": one.schedule, "at": one.at.isoformat(), "how": one.how} for one in made_for],
        "leases": [entry_document(entry) for entry in entries],
        "refusals": [refusal_document(refusal) for refusal in refusals],
        **({} if waits is None else {"waits_for": waits._asdict()}),
    }
    origin = JobOrigin(made_for, waits)
    terminal.show(document, lambda: _drawn(job, entries, refusals, origin, full))


class JobOrigin(NamedTuple):
    """Which schedule made a job, and what it waits for."""

    made_for: list[Occurrence]
    waits: WaitsFor | None


def _drawn(
    job: JobInfo,
    entries: list[LedgerEntry],
    refusals: list[Refusal],
    origin: JobOrigin,
    full: bool,
) -> RenderableType:
    return Group(
        Text.assemble((f"job {job.id}", "bold"), f"  {safe(job.task)}  ", toned(job.state)),
        _facts(job, origin),
        Text(),
        timeline.drawn(timeline.timeline(job, entries, refusals)),
        *_folded("args", _json(job.args), full),
        *_folded("result", "" if job.result is None else _json(job.result), full),
        *_folded("error", job.error or "", full),
    )


def _made_by(one: Occurrence) -> str:
    return f"{one.schedule}, {one.how} {clock(one.at)}"


def _facts(job: JobInfo, origin: JobOrigin) -> Table:
    facts = {
        "queue": f"{job.queue}, priority {job.priority}",
        "attempt": f"{job.attempt} of {job.max_attempts}"
        + (f", {job.crashes} crash{'es' * (job.crashes > 1)}" if job.crashes else ""),
        "enqueued": f"{clock(job.created_at)} ({ago(job.created_at)})",
        "due": f"{clock(job.run_at)} ({ago(job.run_at)})" if job.run_at != job.created_at else None,
        "ended": f"{clock(job.finished_at)} ({ago(job.finished_at)})" if job.finished_at else None,
        "key": job.key,
        "waits for": None if origin.waits is None else told_wait(origin.waits),
        "schedule": ", ".join(f"{one.schedule}, {one.how} {clock(one.at)}" for one in origin.made_for)
        or None,
        "damaged": job.damage,
    }
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value is not None:
            table.add_row(Text(f"  {name}", style="dim"), Text(safe(value)))
    return table


def told_wait(waits: WaitsFor) -> str:
    """What keeps a job at the gate of its limit.

    >>> told_wait(WaitsFor("api", 5, None, None, held_of_key=5, held=9, before=12, tokens=None))
    'limit api: 5 of 5 of its key run or are next, 12 jobs of its key come first'
    """
    said = []
    if waits.per_key is not None:
        said.append(f"{waits.held_of_key} of {waits.per_key} of its key run or are next")
    if waits.total is not None:
        said.append(f"{waits.held} of {waits.total} in total run or are next")
    if waits.tokens == 0:
        said.append("its rate allows no start just now")
    if waits.before:
        said.append(
            f"{counted(waits.before, 'job')} of its key {'come' if waits.before > 1 else 'comes'} first"
        )
    return f"limit {waits.limit}: {', '.join(said) or 'a slot'}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2 if len(str(value)) > 60 else None)


def _folded(title: str, text: str, full: bool) -> list[Text]:
    """A heading and the text under it, line by line; a long one is cut in its middle unless `full`."""
    if not text:
        return []
    heading = [Text(), Text(title, style="dim")]
    lines = text.splitlines()
    if full or (len(lines) <= FOLD_LINES and len(text) <= FOLD_CHARS):
        return [*heading, *_lines(lines)]
    head = text[: FOLD_CHARS * 3 // 4].splitlines()[: FOLD_LINES * 3 // 4]
    tail = text[-FOLD_CHARS // 4 :].splitlines()[-FOLD_LINES // 4 :]
    cut = Text(f"  ... {len(text):,} characters in all; --full shows them", style="dim")
    return [*heading, *_lines(head), cut, *_lines(tail)]


def _lines(lines: list[str]) -> list[Text]:
    return [Text(f"  {safe(line)}", overflow="fold") for line in lines]
