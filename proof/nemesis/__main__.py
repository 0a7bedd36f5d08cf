"""`python -m proof.nemesis`: play a storm, show it as it goes, leave a report, answer by the exit code."""

import argparse
import asyncio
import secrets
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from proof.nemesis.arena import Wanted
from proof.nemesis.failover import How, fail_over
from proof.nemesis.mutants import MUTANTS
from proof.nemesis.outcome import Outcome
from proof.nemesis.report import named, table, write
from proof.nemesis.run import storm_over

SAID_EVERY_SECONDS = 15.0
"""Where there is no terminal for a bar, as in CI, a line now and then."""

EXITS = {"kept": 0, "broken": 1, "void": 3}
"""2 is a wrong command line."""


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m proof.nemesis", description=__doc__)
    parser.add_argument("--seed", type=int, help="the schedule of faults; without one, a new one is drawn")
    parser.add_argument("--minutes", type=float, default=3.0, help="how long faults go on (3)")
    parser.add_argument("--rate", type=float, default=40.0, help="jobs enqueued a second, about (40)")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), default="", help="break this on purpose")
    parser.add_argument("--report", type=Path, default=Path(".faultline/nemesis"), help="where reports go")
    parser.add_argument("--no-failover", action="store_true", help="leave out the two failovers at the end")
    return parser


def main() -> int:
    asked = options().parse_args()
    seed = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    wanted = Wanted(seed, asked.minutes, asked.rate, asked.mutant)
    console = Console()
    console.print(f"[bold]nemesis[/] seed {seed}, {asked.minutes:g} minutes of faults; repeat: --seed {seed}")
    if wanted.mutant:
        console.print(f"[bold yellow]mutant {wanted.mutant}[/]: {MUTANTS[wanted.mutant].says}")
    folder = Path(tempfile.mkdtemp(prefix="faultline-nemesis-logs-", dir="/tmp"))
    outcome = asyncio.run(_play(wanted, folder, console, not asked.no_failover))
    pages = write(outcome, asked.report)
    _say(outcome, console, folder, pages)
    return EXITS[outcome.verdict]


async def _play(wanted: Wanted, folder: Path, console: Console, failovers: bool) -> Outcome:
    columns = (
        BarColumn(24),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting the server and the crew", total=1.0)

        said_at = time.monotonic()

        def tell(what: str, done: float) -> None:
            nonlocal said_at
            bar.update(task, description=what, completed=done)
            if not console.is_terminal and time.monotonic() - said_at >= SAID_EVERY_SECONDS:
                said_at = time.monotonic()
                console.print(f"{done:4.0%} {what}", markup=False)

        outcome = await storm_over(wanted, folder / "storm", tell)
        hows: tuple[How, ...] = ("lossy", "synchronous") if failovers and not outcome.broken else ()
        # Side by side, over servers of their own: most of a failover is waiting for leases to end. And each
        # on a loop of its own, for making a standby would hold up the other's lines.
        plays = [fail_over(wanted, how, folder / how, outcome, tell) for how in hows]
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, play) for play in plays))
        return outcome


def _say(outcome: Outcome, console: Console, folder: Path, pages: list[Path]) -> None:
    for what, why in outcome.lacks.items():
        console.print(f"[bold red]SKIPPED[/] {what}: {why}")
    for remark in outcome.remarks:
        console.print(f"[yellow]{remark}[/]")
    console.print(table(outcome))
    for name in outcome.never:
        console.print(f"[bold red]VOID[/] never: {name}")
    console.print(f"worker logs: {folder}; report: {', '.join(map(str, pages))}")
    # Once more, and last: of a long log often only the end is kept.
    for finding in outcome.broken:
        console.print(f"[bold red]BROKEN[/] {named(finding)}: {finding.says}")
        for example in finding.examples:
            console.print(f"  {example}", markup=False)
    colour = {"kept": "green", "broken": "red", "void": "yellow"}[outcome.verdict]
    console.print(f"[bold {colour}]{outcome.verdict.upper()}[/] seed {outcome.wanted.seed}")


if __name__ == "__main__":
    sys.exit(main())
