"""`faultline acts`: acts of people on jobs, queues and keys; who, when and why."""

import json
from typing import Any

import click

from faultline.cli.documents import plain
from faultline.cli.format import clock
from faultline.cli.options import JOB_ID, LIMIT, CliCommand, told
from faultline.cli.tables import draw, prose, wide, word
from faultline.cli.terminal import Terminal
from faultline.store import calls
from faultline.store.rows import AuditedAct

COLUMNS = (word("when"), wide("who"), word("did"), wide("on"), prose("why"))


@click.command(cls=CliCommand)
@click.option("--job", "job_id", type=JOB_ID, help="On this job.")
@click.option("--queue", help="On this queue and its jobs.")
@click.option("--limit", type=LIMIT, default=50, show_default=True, help="At most so many.")
@told
def command(terminal: Terminal, job_id: int | None, queue: str | None, limit: int) -> None:
    """List what operators did, newest first: who, when, on what, and why."""
    with terminal.database() as session:
        found = session.run(calls.acts(job_id=job_id, queue=queue, most=limit))
    terminal.show(
        [plain(act._asdict()) for act in found],
        lambda: draw(COLUMNS, (_row(act) for act in found), "no acts are recorded"),
    )


def _row(act: AuditedAct) -> tuple[object, ...]:
    who = act.actor if act.actor == act.role else f"{act.actor} as {act.role}"
    return clock(act.at), who, act.verb, _on_what(act), act.reason


def _on_what(act: AuditedAct) -> str:
    parts: list[Any] = []
    if act.job_id is not None:
        parts.append(f"job {act.job_id}")
    if act.queue is not None:
        parts.append(f"queue {act.queue}")
    if act.detail:
        parts.append(json.dumps(act.detail))
    return ", ".join(parts)
