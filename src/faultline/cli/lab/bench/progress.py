"""The present step of a scenario, on a terminal; silence elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from faultline.cli.terminal import Terminal
from faultline.lab.bench.case import Progress as Told


@contextmanager
def shown_progress(terminal: Terminal, name: str) -> Iterator[Told]:
    """One bar for the present step, with the time of the scenario so far."""
    silent = terminal.quiet or not terminal.err.is_terminal
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal.err, transient=True, disable=silent) as progress:
        bar = progress.add_task(name, total=None)

        def tell(what: str, done: int, total: int) -> None:
            progress.update(bar, description=f"{name}: {what}", completed=done, total=max(total, 1))

        yield tell
