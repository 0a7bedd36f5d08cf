"""Commands that measure: one for each scenario, and one for all of them."""

from pathlib import Path
from typing import Any, Final

import click

from faultline.cli.exit_codes import ERROR, line_of
from faultline.cli.lab.bench.progress import shown_progress
from faultline.cli.lab.bench.show import give
from faultline.cli.lab.bench.sizes import size_of, size_options
from faultline.cli.options import CliCommand, told
from faultline.cli.terminal import Terminal
from faultline.errors import FaultlineError
from faultline.lab.bench import bench_report as reports
from faultline.lab.bench.bench_database import server
from faultline.lab.bench.scenario import BenchScenario
from faultline.lab.bench.scenario_registry import SCENARIOS

QUICK_EVERY: Final = 0.1
"""Seconds from one sample to the next at a quick size."""

FILE: Final = click.Path(dir_okay=False, path_type=Path)
FOLDER: Final = click.Path(file_okay=False, path_type=Path)


def _wishes(json_kind: click.Path, json_help: str) -> list[click.Parameter]:
    return [
        click.Option(["--quick"], is_flag=True, help="A small size: seconds, to see that it works."),
        click.Option(["--json", "json_path"], type=json_kind, help=json_help),
        click.Option(["--plot"], type=FOLDER, help="Draw plots into this folder, as PNG and SVG."),
    ]


def command_of(scenario: BenchScenario) -> click.Command:
    """A scenario as a command."""

    @told
    def run(
        terminal: Terminal, /, quick: bool, json_path: Path | None, plot: Path | None, **asked: Any
    ) -> None:
        with server(terminal.dsn) as dsn:
            _run(terminal, scenario, size_of(scenario, quick, asked), dsn, quick, json_path, plot)

    summary = f"{scenario.summary[0].upper()}{scenario.summary[1:]}."
    params = [*_wishes(FILE, "Write the report to this file."), *size_options(scenario)]
    return CliCommand(scenario.name, callback=run, params=params, help=summary)


@told
def _run_all(terminal: Terminal, quick: bool, json_path: Path | None, plot: Path | None) -> int:
    failed = False
    with server(terminal.dsn) as dsn:
        for scenario in SCENARIOS.values():
            file = None if json_path is None else json_path / f"{scenario.name}.json"
            try:
                _run(terminal, scenario, size_of(scenario, quick, {}), dsn, quick, file, plot)
            except FaultlineError as error:  # the others are measured all the same
                failed = True
                terminal.err.print(f"{scenario.name} came to no end: {line_of(error)}", style="red")
    return ERROR if failed else 0


all_command: Final = CliCommand(
    "all",
    callback=_run_all,
    params=_wishes(FOLDER, "Write a report a scenario into this folder."),
    help="Run every scenario, one after the other.",
)


def _run(
    terminal: Terminal,
    scenario: BenchScenario,
    size: Any,
    dsn: str,
    quick: bool,
    file: Path | None,
    plot: Path | None,
) -> None:
    with shown_progress(terminal, scenario.name) as progress:
        report = reports.run(scenario, size, dsn, progress, QUICK_EVERY if quick else None)
    give(terminal, scenario, report, file, plot)
