"""Names in a command's arguments, compared with the known ones: a typo must not look like success."""

from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

import click

from faultline.cli.terminal import CommandSession, Terminal
from faultline.errors import InputError
from faultline.text.suggest import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")

NEWEST = 1_000
"""The number of newest jobs in which a task's name is searched."""


def new_option(command: Callable[P, R]) -> Callable[P, R]:
    """For acts that are allowed on a queue before its first job."""
    return click.option(
        "--new", is_flag=True, help="Also a queue that has had neither a job nor a worker: else it is a typo."
    )(command)


def check_queues(session: CommandSession, names: Sequence[str], new: bool | None = None) -> None:
    """Refuse an unknown queue before any act; None: the command has no --new."""
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


def remark_queue(terminal: Terminal, session: CommandSession, name: str) -> None:
    """Beside an empty list: a remark that the queue does not exist."""
    known = queues_in(session)
    if name not in known:
        terminal.remark(f"no queue is called {name}{did_you_mean(name, known)}")


def remark_unserved_queue(
    terminal: Terminal, name: str, known: Sequence[str], served: Sequence[str], of_the_app: Sequence[str]
) -> None:
    """Beside a job that was sent to a named queue: a remark that it is new, or that no worker serves it."""
    if name in of_the_app or name in served:
        return
    if name in known:
        terminal.remark(
            f"no worker serves queue {name} now{did_you_mean(name, [*of_the_app, *served]) or '.'} "
            f"The job waits there until one does: faultline worker MODULE:APP --queues {name}"
        )
    else:
        terminal.remark(
            f"queue {name} is new: it has had neither a job nor a worker"
            f"{did_you_mean(name, [*of_the_app, *known]) or '.'} A job waits there until a worker serves it: "
            f"faultline worker MODULE:APP --queues {name}"
        )


def remark_task_of_none(terminal: Terminal, session: CommandSession, name: str) -> None:
    """Beside an empty list: a remark that no recent job is of this task, with a suggestion."""
    from faultline.store import calls

    lately = {job.task for job in session.run(calls.list_jobs(None, None, None, None, NEWEST))}
    if name not in lately:
        terminal.remark(
            f"none of the {NEWEST:,} newest jobs is of the task {name}{did_you_mean(name, lately)}"
        )


def queues_in(session: CommandSession) -> list[str]:
    """Every queue that has had a job or a worker, or was paused before."""
    from faultline.store import calls

    return [queue.queue for queue in session.run(calls.list_queues())]


def queues_served_in(session: CommandSession) -> list[str]:
    """The queues of the workers that are there."""
    from faultline.store import calls

    workers = session.run(calls.list_workers(False, NEWEST))
    return sorted({queue for worker in workers if not worker.silent for queue in worker.queues})


def remark_task(terminal: Terminal, name: str, lately: Iterable[str]) -> None:
    """Beside a job that was enqueued without its app: a remark that the task is new here."""
    known = set(lately)
    if name not in known:
        terminal.remark(
            f"no other of the {NEWEST:,} newest jobs is of the task {name}{did_you_mean(name, known) or '.'} "
            "Nothing checked the name: --app MODULE:APP does, and the arguments"
        )
