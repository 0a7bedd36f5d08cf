"""Names that a command was given, held against those that are known: a typo must not look like success."""

from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

import click

from faultline.cli.terminal import Session, Terminal
from faultline.errors import InputError
from faultline.suggest import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")

NEWEST = 1_000
"""Of so many jobs, the newest, a task's name is looked for."""


def new_option(command: Callable[P, R]) -> Callable[P, R]:
    """For what may be said of a queue before its first job."""
    return click.option(
        "--new", is_flag=True, help="Also a queue that has had neither a job nor a worker: else it is a typo."
    )(command)


def check_queues(session: Session, names: Sequence[str], new: bool | None = None) -> None:
    """Refuse a queue that nothing here has ever named, before anything is done; None: there is no --new."""
    if new:
        return
    known = queues_in(session)
    but = "" if new is None else "; --new takes one that has not"
    for name in names:
        if name not in known:
            raise InputError(
                f"no queue is called {name}{did_you_mean(name, known) or '.'} Nothing was done. `faultline "
                f"queues list` names those that have had a job or a worker{but}"
            )


def remark_queue(terminal: Terminal, session: Session, name: str) -> None:
    """Beside an empty list: that the queue it was asked of is not there at all."""
    known = queues_in(session)
    if name not in known:
        terminal.remark(f"no queue is called {name}{did_you_mean(name, known)}")


def remark_new_queue(terminal: Terminal, name: str, known: Sequence[str], of_the_app: Sequence[str]) -> None:
    """Beside a job that was sent to a queue by name: that nothing has used that queue before."""
    if name not in known and name not in of_the_app:
        terminal.remark(
            f"queue {name} is new: it has had neither a job nor a worker"
            f"{did_you_mean(name, [*of_the_app, *known]) or '.'} A job waits there until a worker serves it: "
            f"faultline worker MODULE:APP --queues {name}"
        )


def remark_task_of_none(terminal: Terminal, session: Session, name: str) -> None:
    """Beside an empty list: that no recent job is of the task it was asked of, and what may be meant."""
    from faultline.store import calls

    lately = {job.task for job in session.run(calls.list_jobs(None, None, None, None, NEWEST))}
    if name not in lately:
        terminal.remark(
            f"none of the {NEWEST:,} newest jobs is of the task {name}{did_you_mean(name, lately)}"
        )


def queues_in(session: Session) -> list[str]:
    """Every queue that has had a job or a worker, or was paused before it had."""
    from faultline.store import calls

    return [queue.queue for queue in session.run(calls.list_queues())]


def remark_task(terminal: Terminal, name: str, lately: Iterable[str]) -> None:
    """Beside a job that was enqueued without its app: that no job of this task was seen before it."""
    known = set(lately)
    if name not in known:
        terminal.remark(
            f"no other of the {NEWEST:,} newest jobs is of the task {name}{did_you_mean(name, known) or '.'} "
            "Nothing checked the name: --app MODULE:APP does, and the arguments"
        )
