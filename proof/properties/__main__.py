"""`make properties`: every property asked often, and every mutant that one of them must notice."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from faultline.embedded import EmbeddedServer
from faultline.store.migrate import migrate
from proof.properties import catalog, report
from proof.properties.report import PropertyCheck

AT_ONCE = 2
WIDE = 150
TEMPLATE = "properties_template"


def main() -> int:
    asked, began = _arguments(), time.monotonic()
    console = _console()
    with _server() as dsn:
        tasks = catalog.every(dsn, TEMPLATE, asked.examples, asked.values, asked.only)
        lines, counts = _perform(tasks, console)
    console.print(report.table(lines))
    seconds = time.monotonic() - began
    report.write(lines, counts, seconds)
    return _last_word(console, lines, counts, seconds, bool(asked.only))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proof.properties", description=__doc__)
    parser.add_argument("--examples", type=int, default=120, help="histories of the machine, in all")
    parser.add_argument("--values", type=int, default=200, help="values that each property is asked with")
    parser.add_argument("--only", default="", help="only what has this in its name")
    return parser.parse_args()


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


@contextmanager
def _server() -> Iterator[str]:
    """A server in a folder that goes with it, and a migrated database to copy."""
    memory = Path("/dev/shm")
    quick = str(memory) if memory.is_dir() and os.access(memory, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="faultline-properties-", dir=quick) as folder,
        # Without fsync: nothing here outlives the run.
        EmbeddedServer.open(Path(folder) / "data", fsync=False, keep=False) as server,
    ):
        server.create_database(TEMPLATE)
        migrate(server.dsn(TEMPLATE))
        yield server.dsn()


def _perform(tasks: list[catalog.PropertyTask], console: Console) -> tuple[list[PropertyCheck], Counter[str]]:
    lines, counts = [], Counter[str]()
    with ProcessPoolExecutor(AT_ONCE) as hands, _progress(console, len(tasks)) as tell:
        for line, seen in hands.map(catalog.perform, tasks):
            lines.append(line)
            counts.update(seen)
            tell(f"{line.name}: {line.found}")
    return lines, counts


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal, a line for each thing that was done elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("properties", total=total)

        def tell(what: str) -> None:
            progress.update(bar, advance=1, description=what)
            if not console.is_terminal:
                console.print(what, style="dim", highlight=False)

        yield tell


def _last_word(
    console: Console, lines: list[PropertyCheck], counts: Counter[str], seconds: float, only_some: bool
) -> int:
    console.print("Sometimes: " + ", ".join(f"{what} {counts[what]:,}" for what in report.SOMETIMES))
    wrong = [line for line in lines if not line.good]
    missing = [] if only_some else report.never(counts)
    for line in wrong:
        console.print(f"WRONG: {line.name} is {line.found}\n{line.first}", style="bold red", highlight=False)
    if missing:
        console.print(f"VOID: this never happened: {', '.join(missing)}", style="bold red")
    if wrong or missing or not lines:
        return 1
    console.print(f"{len(lines)} checks, each as expected, {seconds:.0f} s; {report.REPORT}", style="bold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
