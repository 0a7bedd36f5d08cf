"""`faultline workers`: the workers, their jobs, and their last heartbeats."""

import click

from faultline.cli.documents import plain
from faultline.cli.format import ago
from faultline.cli.options import LIMIT, CliCommand, told
from faultline.cli.tables import draw, number, toned, wide, word
from faultline.cli.terminal import Terminal
from faultline.store import calls
from faultline.store.rows import WorkerInfo

COLUMNS = (
    number("id"), wide("name"), word("state"), number("jobs"), wide("queues"), number("tasks"), word("seen"),
    word("started"), word("version"),
)  # fmt: skip


@click.command(cls=CliCommand)
@click.option("--all", "gone", is_flag=True, help="Those that have stopped, too.")
@click.option("--limit", type=LIMIT, default=50, show_default=True, help="At most so many.")
@told
def command(terminal: Terminal, gone: bool, limit: int) -> None:
    """List workers, newest first. `silent` means no heartbeat for a default lease: it died, or froze."""
    with terminal.database() as session:
        found = session.run(calls.list_workers(gone, limit))
    terminal.show(
        [{**plain(worker._asdict()), "state": _state(worker)} for worker in found],
        lambda: draw(
            COLUMNS,
            (_row(worker) for worker in found),
            "no worker is there; start one: faultline worker module:app",
        ),
    )


def _state(worker: WorkerInfo) -> str:
    if worker.stopped_at is not None:
        return "stopped"
    return "silent" if worker.silent else "working"


def _tasks(worker: WorkerInfo) -> str:
    return "any" if worker.tasks is None else str(len(worker.tasks))


def _row(worker: WorkerInfo) -> tuple[object, ...]:
    jobs = f"{worker.running}/{worker.jobs_max}"
    return (
        worker.id, worker.name, toned(_state(worker)), jobs, ",".join(worker.queues), _tasks(worker),
        ago(worker.seen_at), ago(worker.started_at), worker.version,
    )  # fmt: skip
