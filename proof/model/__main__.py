"""`make model`: TLC on every configuration, and the ledgers of real drills against the same relation."""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from proof.model import configs, report, tlc, tracing
from proof.model.configs import Config
from proof.model.report import ModelCheck
from proof.model.tracing import Told

AT_ONCE = 2
WIDE = 130


def main() -> int:
    asked = _arguments()
    console, began = _console(), time.monotonic()
    command, skipped = _tlc()
    with _progress(console) as tell:
        lines = list(_configurations(command, asked.only, tell)) if command else []
        if not asked.only:
            lines += tracing.check_all(command, asked.dsn, asked.seed, asked.made_up, tell)
    console.print(report.table(lines))
    seconds = time.monotonic() - began
    report.write(lines, seconds, skipped)
    return _last_word(console, lines, seconds, skipped)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proof.model", description=__doc__)
    parser.add_argument("--only", default="", help="only configurations whose name contains this; no drills")
    parser.add_argument("--dsn", default=os.environ.get("FAULTLINE_TEST_DSN"), help="a server for the drills")
    parser.add_argument("--seed", type=int, default=4, help="of the histories that are made up")
    parser.add_argument("--made-up", type=int, default=400, help="how many histories are made up")
    return parser.parse_args()


def _console() -> Console:
    """Wide enough for the table where there is no terminal to be narrow."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


def _tlc() -> tuple[list[str] | None, str]:
    try:
        return tlc.find(), ""
    except tlc.NoTlc as missing:
        return None, str(missing)


def _configurations(command: list[str], only: str, tell: Told) -> Iterator[ModelCheck]:
    chosen = [config for config in configs.every() if only in config.name]

    def check(config: Config) -> ModelCheck:
        brief = config.kind != "model"
        found = tlc.run(command, "Faultline.tla", config.path, liveness=config.liveness, brief=brief)
        tell(f"{config.name}: {found.word}")
        if found.word == "error":
            sys.stderr.write(found.output)
        return ModelCheck(config.kind, config.name, config.expects, found.word, found.states, found.seconds)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        yield from threads.map(check, chosen)


@contextmanager
def _progress(console: Console) -> Iterator[Told]:
    """A bar on a terminal, a line for each thing that was done elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    total = len(configs.every()) + tracing.PARTS
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("model", total=total)

        def tell(what: str) -> None:
            progress.update(bar, advance=1, description=what)
            if not console.is_terminal:
                console.print(what, style="dim", highlight=False)

        yield tell


def _last_word(console: Console, lines: list[ModelCheck], seconds: float, skipped: str) -> int:
    wrong = [line.name for line in lines if not line.good]
    if wrong:
        console.print(f"WRONG: {', '.join(wrong)} ({seconds:.0f} s)", style="bold red")
        return 1
    console.print(f"{len(lines)} checks, each as expected, {seconds:.0f} s; {report.REPORT}", style="bold")
    if skipped:
        console.print(
            f"SKIPPED: TLC did not run, and the model itself was NOT checked: {skipped}", style="bold red"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
