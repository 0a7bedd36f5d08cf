"""One act on each of several jobs: a failure for one does not stop the others."""

from collections.abc import Callable, Sequence

import click

from faultline.cli.exit_codes import ERROR, line_of
from faultline.cli.terminal import Terminal
from faultline.errors import JobNotFound, WrongState


def for_each(terminal: Terminal, ids: Sequence[int], done: str, act: Callable[[int], object]) -> int:
    """Act on each job and print the result; the exit code is 1 when any was refused."""
    answers = [(job_id, _answer(job_id, act)) for job_id in ids]
    if terminal.json:
        terminal.give(
            [{"id": job_id, "done": not refused, "error": refused or None} for job_id, refused in answers]
        )
    for job_id, refused in answers:
        if refused:
            click.echo(f"faultline: {refused}", err=True)
        else:
            terminal.say(f"job {job_id} {done}")
    return ERROR if any(refused for _, refused in answers) else 0


def _answer(job_id: int, act: Callable[[int], object]) -> str:
    try:
        act(job_id)
    except (JobNotFound, WrongState) as error:
        return line_of(error)
    return ""
