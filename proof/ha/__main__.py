"""`python -m proof.ha`: make a high-availability cluster, break it in every way, and judge what is left."""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from proof.ha import isolation, network, report
from proof.ha.play import Played
from proof.ha.programs import NEWEST, OLDEST, CannotRun, Programs, obtain
from proof.ha.scenarios import ALL, HaScenario
from proof.ha.stage import Stage

EXITS: Final = {"kept": 0, "broken": 1, "void": 3}
"""2 is a wrong command line, or a machine that cannot run the lab."""

CANNOT: Final = 2
INTERRUPTED: Final = 130


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m proof.ha", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help="without one, all of them")
    parser.add_argument("--list", action="store_true", help="say what there is, and do nothing")
    parser.add_argument(
        "--postgres", type=int, choices=(OLDEST, NEWEST), default=NEWEST, help="of the cluster"
    )
    parser.add_argument("--server", action="store_true", help="two replicas of `faultline server` as well")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up at the end, until Ctrl-C")
    parser.add_argument("--folder", type=Path, help="for reports and logs; without one, a new one in /tmp")
    return parser


def main() -> int:
    parser = options()
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(ALL):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}; --list shows all")
    if asked.list:
        print("\n".join(f"{each.name:22}{each.says}" for each in ALL.values()))
        return 0
    if os.geteuid() != 0 or sys.platform != "linux":
        print("make ha needs root on Linux: it makes network namespaces. Nothing was done.", file=sys.stderr)
        return CANNOT
    try:
        programs = obtain()
    except CannotRun as error:
        print(f"make ha cannot run here: {error}", file=sys.stderr)
        return CANNOT
    if not isolation.is_inside():
        return isolation.enter(sys.argv[1:])
    return isolation.as_init(lambda: run(asked, programs))


def run(asked: argparse.Namespace, programs: Programs) -> int:
    """Inside: play what was asked for, show the table, clean up."""
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="faultline-ha-", dir="/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    console = Console(width=None if sys.stdout.isatty() else 250)
    console.print(f"reports and logs: {folder}")
    wanted = [
        each for each in ALL.values() if each.name in asked.names or not (asked.names or each.by_name_only)
    ]
    played: list[Played] = []
    try:
        with _network():
            _play_all(wanted, asked, programs, folder, console, played)
    except KeyboardInterrupt:
        console.print("interrupted; what was played is judged below, the rest is not")
        _show(played, len(wanted), folder, console)
        return INTERRUPTED
    return EXITS[_show(played, len(wanted), folder, console)]


@contextlib.contextmanager
def _network() -> Iterator[None]:
    network.make()
    try:
        yield
    finally:
        network.drop()


def _play_all(
    wanted: Sequence[HaScenario], asked: argparse.Namespace, programs: Programs, folder: Path,
    console: Console, played: list[Played],
) -> None:  # fmt: skip
    began, stage = time.monotonic(), Stage(folder, programs, asked.postgres)
    try:
        for number, scenario in enumerate(wanted, 1):

            def tell(what: str, *, place: str = f"{number}/{len(wanted)} {scenario.name}") -> None:
                minutes, seconds = divmod(int(time.monotonic() - began), 60)
                console.print(
                    f"{minutes:2}:{seconds:02} [{place}] {what}",
                    markup=False,
                    highlight=False,
                    soft_wrap=True,
                )

            played.append(stage.play(scenario, tell, server=asked.server))
            report.write(played, folder)
            tell(f"{played[-1].judgement.verdict}: {'; '.join(report.why(played[-1])) or 'everything holds'}")
        if asked.keep and stage.has_cluster:
            _hold(console)
    finally:
        stage.close()


def _hold(console: Console) -> None:
    """--keep: the cluster stays up until Ctrl-C."""
    console.print(f"the cluster is up: {isolation.way_in()}; Ctrl-C ends it and shows the tables")
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(1)


def _show(played: Sequence[Played], wanted: int, folder: Path, console: Console) -> str:
    for each in played:
        for line in report.why(each):
            console.print(f"{each.scenario.name}: {line}", markup=False, soft_wrap=True)
    for table in report.tables(played):
        console.print(table)
    verdict = report.verdict(played, wanted)
    console.print(f"reports and logs: {folder}")
    console.print(
        f"[{report.COLOURS[verdict]}]{verdict.upper()}[/] {len(played)} of {wanted} scenarios played"
    )
    return verdict


if __name__ == "__main__":
    sys.exit(main())
