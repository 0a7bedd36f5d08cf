"""`python -m proof.mutants`: try every mutant, say which test killed it, and fail if one lives."""

import json
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from proof.mutants import court, page
from proof.mutants.mutant import Mutant
from proof.mutants.table import MUTANTS
from proof.mutants.trial import Verdict

COLOURS = {"killed": "green", "survived": "red", "unfit": "red"}


@click.command()
@click.argument("words", nargs=-1)
@click.option("--jobs", default=4, show_default=True, help="How many stand trial at once.")
@click.option("--write", is_flag=True, help="Write the table into docs/promises.md.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the verdicts as JSON.")
@click.option("--green", is_flag=True, help="First check that all the named tests pass without a mutant.")
def main(words: tuple[str, ...], jobs: int, write: bool, json_path: Path | None, green: bool) -> None:
    """Try every mutant, or those whose name, promise, file or test holds one of WORDS."""
    chosen = [mutant for mutant in MUTANTS if not words or any(_fits(mutant, word) for word in words)]
    if not chosen:
        raise click.UsageError("no mutant is of that name")
    if write and words:
        raise click.UsageError("the page holds all mutants: --write tries them all")
    with court.a_server() as server:
        if green:
            court.check_green(chosen, server.dsn())
        began = time.monotonic()
        verdicts = _try(chosen, server.dsn(), jobs)
    _print(verdicts, time.monotonic() - began)
    today = datetime.now(UTC).date()
    if json_path:
        json_path.write_text(json.dumps(page.as_json(verdicts, server.version, today), indent=2) + "\n")
    if write:
        page.write(verdicts, server.version, today)
    sys.exit(any(verdict.word != "killed" for verdict in verdicts))


def _fits(mutant: Mutant, word: str) -> bool:
    return any(word in text for text in (mutant.name, mutant.promise, mutant.files, mutant.test))


def _try(chosen: Sequence[Mutant], dsn: str, jobs: int) -> list[Verdict]:
    columns = [BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")]
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=len(chosen))

        def tell(verdict: Verdict) -> None:
            bar.update(task, advance=1, description=f"{verdict.word}: {verdict.mutant.name}")
            if verdict.word != "killed":
                bar.console.print(_line(verdict))

        return court.try_all(chosen, dsn, jobs, tell)


def _print(verdicts: Sequence[Verdict], seconds: float) -> None:
    table = Table("promise", "what is broken", "verdict", "the first test that failed", "s")
    for verdict in verdicts:
        test = verdict.first.rpartition("::")[2] or verdict.said
        word = f"[{COLOURS[verdict.word]}]{verdict.word}[/]"
        table.add_row(
            verdict.mutant.promise, verdict.mutant.name, word, escape(test), f"{verdict.seconds:.1f}"
        )
    console = Console()
    console.print(table)
    killed = sum(verdict.word == "killed" for verdict in verdicts)
    for verdict in verdicts:  # after the table, because some logs keep only their end
        if verdict.word != "killed":
            console.print(_line(verdict))
    console.print(f"{killed} of {len(verdicts)} mutants were killed, in {seconds:.0f} s")


def _line(verdict: Verdict) -> str:
    """The verdict on one mutant, and its reason."""
    told = f"{verdict.mutant.name} ({verdict.mutant.test}) {verdict.first} {verdict.said}"
    return f"[{COLOURS[verdict.word]}]{verdict.word}[/]: {escape(told)}"


if __name__ == "__main__":
    main()
