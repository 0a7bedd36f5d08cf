"""`faultline jobs replay`: give dead jobs all their attempts again."""

from collections.abc import Callable
from datetime import datetime

import click

from faultline.bounds import counted
from faultline.cli.jobs.each import for_each
from faultline.cli.known_names import remark_queue, remark_task_of_none
from faultline.cli.options import JOB_ID, MOMENT, CliCommand, reason_option, told, yes_option
from faultline.cli.terminal import Terminal
from faultline.store import calls

BATCH = 1_000
EVERY_QUEUE = ""  # a wake-up that every worker listens to


@click.command(cls=CliCommand)
@click.argument("ids", type=JOB_ID, metavar="[ID]...", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="All dead jobs that fit the filters; asks first.")
@click.option("-q", "--queue", help="With --all: only those of this queue.")
@click.option("--task", help="With --all: only those of this task.")
@click.option("--died-after", type=MOMENT, help="With --all: only those that died at or after this moment.")
@reason_option
@yes_option
@told
def command(
    terminal: Terminal,
    ids: tuple[int, ...],
    all_of_them: bool,
    queue: str | None,
    task: str | None,
    died_after: datetime | None,
    reason: str | None,
    yes: bool,
) -> int:
    """Put dead jobs back in their queues, from the first attempt. Their tokens go on growing."""
    if bool(ids) == all_of_them:
        raise click.UsageError("Name the jobs by id, or say --all with filters")
    if ids and (queue or task or died_after):
        raise click.UsageError("--queue, --task and --died-after go with --all")
    with terminal.database() as session:
        if ids:
            return for_each(
                terminal,
                ids,
                "queued again",
                lambda job_id: session.run(calls.wake(session.act(calls.replay(job_id), reason))),
            )
        count = session.run(calls.count_dead(queue, task, died_after))
        if queue is not None and not count:
            remark_queue(terminal, session, queue)
        if task is not None and not count:
            remark_task_of_none(terminal, session, task)
        if count:
            terminal.confirm(f"Replay {counted(count, 'dead job')}?", yes)
        replayed = _replay_all(
            count,
            lambda most: session.act(calls.replay_many(queue, task, died_after, most), reason),
            lambda: session.run(calls.wake(EVERY_QUEUE)),
        )
    if terminal.json:
        terminal.give({"replayed": replayed})
    terminal.say(f"{replayed} of {count} queued again")
    return 0


def _replay_all(count: int, replay: Callable[[int], list[int]], wake: Callable[[], None]) -> int:
    """Batch by batch, and never more than were counted: a job that dies again is not replayed endlessly."""
    replayed = 0
    while replayed < count:
        batch = replay(min(BATCH, count - replayed))
        if not batch:
            break
        replayed += len(batch)
        wake()
    return replayed
