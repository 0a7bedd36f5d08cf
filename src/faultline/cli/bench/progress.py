"""What a scenario is doing at this moment, on a terminal; silence elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from faultline.bench.case import Progress as Told
from faultline.cli.terminal import Terminal


@contextmanager
def shown_progress(terminal: Terminal, name: str) -> Iterator[Told]:
    """One bar, for what goes on now; with how long the scenario has taken."""
    silent = terminal.quiet or not terminal.err.is_terminal
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal.err, transient=True, disable=silent) as progress:
        bar = progress.add_task(name, total=None)

        def tell(what: str, done: int, total: int) -> None:
            progress.update(bar, description=f"{name}: {what}", completed=done, total=max(total, 1))

        yield tell
