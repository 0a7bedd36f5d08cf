"""`python -m proof.explorer`: every order of real sessions, or the mutants that it must find."""

import sys
from pathlib import Path

import click
from rich.console import Console

from proof.explorer.mutants import MUTANTS
from proof.explorer.replay import replay
from proof.explorer.run import ExplorerOptions, explore_all, hunt
from proof.explorer.scenarios import SCENARIOS
from proof.explorer.stage import prepare

WIDE = 110
"""Columns of a log, which has no edge."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1)
@click.option("--quick", is_flag=True, help="Only the scenarios that are small.")
@click.option("--mutants", is_flag=True, help="Break the SQL on purpose, and find each breakage.")
@click.option("--processes", type=click.IntRange(1, 64), default=4, help="How many at once.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the report there, too.")
@click.option("--specs", type=click.Path(path_type=Path), help="Write orders as .spec files in this folder.")
@click.option(
    "--replay", "again", is_flag=True, help="NAMES are .spec files: play them with isolationtester."
)
@click.option("--stage", "dsn", help="Make this empty database ready for a .spec, and do nothing else.")
def main(
    names: tuple[str, ...],
    quick: bool,
    mutants: bool,
    processes: int,
    json_file: Path | None,
    specs: Path | None,
    again: bool,
    dsn: str | None,
) -> None:
    """Play every interleaving of the shipped SQL functions, over real sessions of an embedded PostgreSQL.

    NAMES are scenarios, or with --mutants mutants; without any, all of them.
    """
    if dsn:
        prepare(dsn)
        return
    if again:
        sys.exit(replay([Path(name) for name in names], Console()))
    known = list(MUTANTS if mutants else SCENARIOS)
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(f"nothing is called {unknown[0]!r}; there are: {', '.join(known)}")
    chosen = list(names) or [name for name in known if mutants or not quick or SCENARIOS[name].is_quick]
    wishes = ExplorerOptions(processes, json_file, specs)
    console = Console() if sys.stdout.isatty() else Console(width=WIDE)
    sys.exit((hunt if mutants else explore_all)(chosen, wishes, console))


if __name__ == "__main__":
    main()
