"""`python -m proof.failpoints`: every point, killed and frozen; a table at the end, and an exit code."""

import argparse
import secrets
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import psycopg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from faultline import failpoints
from faultline.embedded import EmbeddedServer
from faultline.store.migrate import migrate
from proof.failpoints.case import FailpointCase, Result, play
from proof.failpoints.mutants import MUTANTS, FailpointMutant
from tests.promises.rewriting import rewrite

TEMPLATE = "failpoints_template"
ACTIONS = ("kill", "freeze")
SERVER = {"max_connections": "400"}

Played = tuple[Result, FailpointMutant | None]


def main() -> int:
    """Enumerated from the list of names itself: a point that is added is covered, or the run is void."""
    asked = _asked()
    cases = [FailpointCase(point, action) for point in asked.points for action in asked.actions]
    mutants = () if asked.no_mutants else MUTANTS
    console = Console()
    began = time.monotonic()
    with EmbeddedServer.open(settings=SERVER, fsync=False) as server:
        server.create_database(TEMPLATE)
        migrate(server.dsn(TEMPLATE))
        played = _play_all(server, cases, mutants, asked.jobs, console)
    results = sorted((result for result, mutant in played if not mutant), key=lambda it: cases.index(it.case))
    console.print(table(results))
    alive = [
        mutant for result, mutant in played if mutant is not None and (result.kept or not result.reached)
    ]
    _tell_mutants(console, mutants, alive)
    broken = verdict(results, console, time.monotonic() - began, whole=len(cases) > 10)
    return int(broken or bool(alive))


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make failpoints ARGS=...", description=__doc__)
    parser.add_argument("--points", nargs="*", choices=failpoints.NAMES, default=failpoints.NAMES)
    parser.add_argument("--actions", nargs="*", choices=ACTIONS, default=ACTIONS)
    parser.add_argument("--jobs", type=int, default=5, help="cases at once, each in a database of its own")
    parser.add_argument("--no-mutants", action="store_true", help="do not ask whether the suite can fail")
    return parser.parse_args()


def _play_all(
    server: EmbeddedServer,
    cases: Sequence[FailpointCase],
    mutants: Sequence[FailpointMutant],
    jobs: int,
    console: Console,
) -> list[Played]:
    columns = (TextColumn("fail points"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    asked = [*((case, None) for case in cases), *((mutant.case, mutant) for mutant in mutants)]
    results = []
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(jobs) as threads:
        bar = progress.add_task("cases", total=len(asked))
        for done in as_completed([threads.submit(_play, server, *one) for one in asked]):
            results.append(done.result())
            progress.advance(bar)
    return results


def _play(server: EmbeddedServer, case: FailpointCase, mutant: FailpointMutant | None) -> Played:
    name = f"failpoint_{secrets.token_hex(4)}"
    server.create_database(name, TEMPLATE)
    try:
        if mutant is not None:
            rewrite(server.dsn(name), mutant.function, mutant.old, mutant.new)
        return play(case, server.dsn(name)), mutant
    except psycopg.Error as error:
        return Result(case, complaints=[f"{type(error).__name__}: {error}"]), mutant
    finally:
        server.drop_database(name)


def _tell_mutants(
    console: Console, mutants: Sequence[FailpointMutant], alive: Sequence[FailpointMutant]
) -> None:
    for mutant in mutants:
        word = "[bold red]lives[/]" if mutant in alive else "[green]killed[/]"
        console.print(
            f"mutant {mutant.name}: {word} by {mutant.case.point}={mutant.case.action}", highlight=False
        )


def table(results: list[Result]) -> Table:
    shown = Table(box=None, padding=(0, 1), title="Fail points", title_justify="left", title_style="bold")
    for name, side in (
        ("point", "left"), ("action", "left"), ("struck", "left"), ("recovered in", "right"),
        ("reaped", "right"), ("refused writes", "right"), ("verdict", "left"),
    ):  # fmt: skip
        shown.add_column(name, justify=side)  # type: ignore[arg-type]
    for result in results:
        took = "" if result.recovered_in is None else f"{result.recovered_in:.1f} s"
        shown.add_row(
            result.case.point, result.case.action, result.struck, took, str(result.reaped),
            str(result.refused), _word(result),
        )  # fmt: skip
    return shown


def _word(result: Result) -> Text:
    if result.kept:
        return Text("kept", "green")
    return Text("; ".join([*([] if result.reached else ["void"]), *result.complaints]), "bold red")


def verdict(results: list[Result], console: Console, seconds: float, *, whole: bool) -> int:
    """0 when every case was kept and the interesting things did happen; a run without them is void."""
    kept = sum(result.kept for result in results)
    reached = sum(result.reached for result in results)
    refused, reaped = sum(result.refused for result in results), sum(result.reaped for result in results)
    console.print(
        f"{kept} of {len(results)} kept, {reached} reached; {reaped} leases reaped, {refused} stale writes "
        f"refused; {seconds:.0f} s",
        style="bold", highlight=False,
    )  # fmt: skip
    void = whole and not (refused and reaped)
    if void:
        console.print("void: no stale write was refused, or no lease was reaped", style="bold red")
    return int(kept < len(results) or void)


if __name__ == "__main__":
    sys.exit(main())
