"""`faultline jobs list`: the newest jobs that fit."""

import click

from faultline.cli.documents import job_document
from faultline.cli.format import ago, first_line
from faultline.cli.known_names import remark_queue, remark_task_of_none
from faultline.cli.options import JOB_ID, LIMIT, CliCommand, parsed, told
from faultline.cli.tables import draw, number, toned, wide, word
from faultline.cli.terminal import Terminal
from faultline.job import JobInfo, JobState, read_state
from faultline.store import calls

COLUMNS = (
    number("id"), word("state"), wide("task"), wide("queue"), number("try"), word("when"), number("token"),
    wide("error"),
)  # fmt: skip


@click.command(cls=CliCommand)
@click.option("--state", type=parsed("|".join(JobState), read_state), help="Only jobs in this state.")
@click.option("-q", "--queue", help="Only jobs of this queue.")
@click.option("--task", help="Only jobs of this task.")
@click.option("--limit", type=LIMIT, default=20, show_default=True, help="At most so many.")
@click.option("--before", type=JOB_ID, help="The page of jobs older than this one.")
@told
def command(
    terminal: Terminal, state: str | None, queue: str | None, task: str | None, limit: int, before: int | None
) -> None:
    """List jobs, newest first."""
    with terminal.database() as session:
        found = session.run(calls.list_jobs(state, queue, task, before, limit))
        if queue is not None and not found:
            remark_queue(terminal, session, queue)
        if task is not None and not found:
            remark_task_of_none(terminal, session, task)
    terminal.show(
        [job_document(job) for job in found],
        lambda: draw(COLUMNS, (_row(job) for job in found), "no job fits"),
    )
    if len(found) == limit and not terminal.json:
        terminal.remark(f"more: --before {found[-1].id}")


def _row(job: JobInfo) -> tuple[object, ...]:
    tries = f"{job.attempt}/{job.max_attempts}"
    error = "" if job.state == JobState.SUCCEEDED else first_line(job.error)
    if job.damage is not None:
        error = f"damaged: {job.damage}"
    return job.id, toned(job.state), job.task, job.queue, tries, _when(job), job.token or "", error


def _when(job: JobInfo) -> str:
    """The time that matters in its state: its end, its claim, or when it is due."""
    return ago(job.finished_at or job.claimed_at or job.run_at)
