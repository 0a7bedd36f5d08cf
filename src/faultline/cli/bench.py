"""`faultline bench`: how fast a queue drains here, and how soon a job is picked up."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from faultline.bench import drain as draining
from faultline.bench import pickup as picking_up
from faultline.bench.drain import Drained
from faultline.bench.pickup import Pickup, spread
from faultline.bench.place import throwaway
from faultline.bench.weight import Weight
from faultline.cli.options import DURATION, Group, told, whole
from faultline.cli.tables import draw, number, prose, word
from faultline.cli.terminal import Terminal

COLUMNS = (word("what"), number("figure"), prose(""))


@click.group(cls=Group)
def command() -> None:
    """Measure on this machine: drain, pickup.

    On an embedded server with fsync on; with --dsn in a database of its own there, dropped after.
    FAULTLINE_DSN is not looked at.
    """


@command.command()
@click.option("--jobs", type=whole(1, 10_000_000), default=20_000, show_default=True, help="No-op jobs.")
@click.option("--workers", type=whole(1, 64), default=1, show_default=True, help="Worker processes.")
@click.option("--keep", type=click.Choice(["full", "outline", "nothing"]), default="full", show_default=True,
              help="What the ledger keeps of finished jobs.")  # fmt: skip
@told
def drain(terminal: Terminal, jobs: int, workers: int, keep: str) -> None:
    """Drain no-op jobs with default settings: from the first handler's start until nothing is left."""
    with throwaway(terminal.dsn) as dsn, _progress(terminal, jobs) as progress:
        drained = draining.drain(dsn, jobs, progress, keep=keep, processes=workers)
    terminal.show(drained.document(), lambda: draw(COLUMNS, _drained(drained), ""))


@command.command()
@click.option(
    "--jobs",
    type=whole(2, picking_up.JOBS_MAX),
    default=500,
    show_default=True,
    help="Jobs, one at a time.",
)
@click.option("--every", type=DURATION, default="20ms", show_default=True, help="The pause between them.")
@told
def pickup(terminal: Terminal, jobs: int, every: timedelta) -> None:
    """Time from a job's commit to its handler's first line, with one idle worker; and the worker's memory."""
    with throwaway(terminal.dsn) as dsn, _progress(terminal, jobs) as progress:
        found = picking_up.pickup(dsn, jobs, every.total_seconds(), progress)
    terminal.show(found.document(), lambda: draw(COLUMNS, _picked_up(found), ""))


def _drained(found: Drained) -> Iterator[tuple[object, ...]]:
    processes = "one worker process" if found.workers == 1 else f"{found.workers} worker processes"
    yield (
        "drained",
        f"{found.jobs_per_second:,.0f}",
        f"jobs/s ({found.jobs:,} in {found.seconds:.2f} s, {processes})",
    )
    if found.cpu_us_per_job is not None:
        yield "client CPU", f"{found.cpu_us_per_job:.1f}", "us/job"
    yield "WAL", f"{found.wal_bytes_per_job:,.0f}", f"bytes/job (keep={found.keep})"
    yield "bulk enqueue", f"{found.enqueued_per_second:,.0f}", "jobs/s (1,000 a call)"
    yield _weighed("memory, draining", found.weight)


def _picked_up(found: Pickup) -> Iterator[tuple[object, ...]]:
    for name, value in spread(found.after_commit_ms).items():
        yield f"pickup {name}", f"{value:.2f}", "ms after the commit"
    for name, value in spread(found.with_enqueue_ms).items():
        yield f"with enqueue {name}", f"{value:.2f}", "ms after the call"
    yield _weighed("memory, idle", found.idle)
    yield _weighed("memory, draining", found.draining)


def _weighed(title: str, weight: Weight) -> tuple[object, ...]:
    once = (
        f"; {weight.shared_once_mb:.0f} with shared pages once" if weight.shared_once_mb is not None else ""
    )
    parts = f"worker {weight.worker_mb:.0f} + pacemaker {weight.pacemaker_mb:.0f}"
    return title, f"{weight.total_mb:.0f}", f"MB ({parts}{once})"


@contextmanager
def _progress(terminal: Terminal, total: int) -> Iterator[Any]:
    """A bar for each thing that goes on, on a terminal; silence elsewhere."""
    bars: dict[str, TaskID] = {}
    silent = terminal.quiet or not terminal.err.is_terminal
    columns = (TextColumn("{task.description:8}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=terminal.err, transient=True, disable=silent) as progress:

        def tell(what: str, done: int) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total)
            progress.update(bars[what], completed=done)

        yield tell
