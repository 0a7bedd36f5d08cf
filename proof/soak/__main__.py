"""`python -m proof.soak`: the suite many times, and a table of the runs."""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from proof.soak.clocks import CLOCKS, Clock
from proof.soak.load import busy_cores
from proof.soak.run import Ran, Wish, run

FAILED: Final = 1
INTERRUPTED: Final = 130
SAID_EVERY_PERCENT: Final = 10


def main(words: Sequence[str] | None = None) -> int:
    """Run what was asked for; 0 only if every run passed."""
    for stop in (signal.SIGINT, signal.SIGTERM):  # a shell's `&` has a process ignore the first
        signal.signal(stop, signal.default_int_handler)
    asked, pytest_words = _arguments(words)
    console = Console(highlight=False, soft_wrap=True)
    clocks = _usable(console)
    logs = asked.logs or Path(
        tempfile.gettempdir(), f"faultline-soak-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    )
    chance, ran = random.Random(asked.seed), []
    try:
        with busy_cores(asked.busy) as busy:
            console.print(
                f"{asked.runs} runs, {asked.jobs} processes each, beside {busy} busy loops; "
                f"first seed {asked.seed}; logs in {logs}"
            )
            for number in range(1, asked.runs + 1):
                logs.mkdir(parents=True, exist_ok=True)
                seed, clock = chance.randrange(2**31), clocks[(number - 1) % len(clocks)]
                wish = Wish(number, seed, clock, asked.jobs, pytest_words, logs / f"run-{number}.log")
                ran.append(_told(wish, asked.runs, console))
    except KeyboardInterrupt:
        console.print("interrupted", style="yellow")
        _show(ran, console)
        return INTERRUPTED
    _show(ran, console)
    return 0 if all(one.well for one in ran) else FAILED


def _arguments(words: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="python -m proof.soak", description="Other words are passed on to pytest."
    )
    parser.add_argument("--runs", type=int, default=10, help="how many runs (10)")
    parser.add_argument("--jobs", type=int, default=8, help="processes of one run (8)")
    parser.add_argument("--busy", type=int, help="busy loops beside it (one a core)")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31), help="repeat a printed one")
    parser.add_argument("--logs", type=Path, help="folder for the output of each run (a new one in /tmp)")
    return parser.parse_known_args(words)


def _usable(console: Console) -> list[Clock]:
    """The clocks that this machine allows; the others are named in a message."""
    usable = []
    for clock in CLOCKS:
        if why := clock.why_not():
            console.print(f"no run with a clock {clock.name}: {why}", style="bold yellow")
        else:
            usable.append(clock)
    return usable


def _told(wish: Wish, runs: int, console: Console) -> Ran:
    """Make one run, and say how far it is."""
    title = f"run {wish.number} of {runs}, seed {wish.seed}, clock {wish.clock.name}"
    with console.status(title) as status:
        said = [0]

        def progress(percent: int, failed: str) -> None:
            status.update(f"{title}: {percent} %")
            if failed:
                console.print(f"  {failed}", style="red", markup=False)
            if not console.is_terminal and percent >= said[0] + SAID_EVERY_PERCENT:
                said[0] = percent
                console.print(f"{title}: {percent} %")

        ran = run(wish, progress, time.monotonic)
    word = "passed" if ran.well else f"FAILED ({len(ran.failed)} tests, exit code {ran.code})"
    console.print(f"{title}: {word} in {ran.seconds:.0f} s", style="green" if ran.well else "bold red")
    return ran


def _show(ran: Sequence[Ran], console: Console) -> None:
    table = Table("run", "seed", "clock", "seconds", "passed", box=None, pad_edge=False)
    table.add_column("failed", overflow="fold")
    for one in ran:
        passed = "did not end" if one.passed is None else str(one.passed)
        failed = "-" if one.well else str(len(one.failed) or f"exit code {one.code}")
        wish = one.wish
        seconds = f"{one.seconds:.0f}"
        table.add_row(str(wish.number), str(wish.seed), wish.clock.name, seconds, passed, failed)
    console.print()
    console.print(table)
    for one in ran:
        for name in one.failed:  # not in the table, which would cut them to the terminal's width
            console.print(f"run {one.wish.number}: {name}", style="red", markup=False)
    well = sum(one.well for one in ran)
    console.print(
        f"\n{well} of {len(ran)} runs passed", style="bold green" if well == len(ran) else "bold red"
    )


if __name__ == "__main__":
    sys.exit(main())
