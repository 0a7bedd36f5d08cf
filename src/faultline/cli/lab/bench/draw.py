"""`faultline bench draw`: plots of existing reports."""

from pathlib import Path
from typing import Final

import click

from faultline.cli.lab.bench.show import give_plots
from faultline.cli.options import CliCommand, told
from faultline.cli.terminal import Terminal
from faultline.errors import InputError
from faultline.lab.bench.bench_report import read
from faultline.lab.bench.scenario_registry import SCENARIOS


@told
def _draw(terminal: Terminal, reports: tuple[Path, ...], folder: Path) -> None:
    for path in reports:
        report = read(path)
        if report.scenario not in SCENARIOS:
            raise InputError(f"{path} is of a scenario that this release does not know")
        give_plots(terminal, SCENARIOS[report.scenario], report, folder)


draw_command: Final = CliCommand(
    "draw",
    callback=_draw,
    params=[
        click.Argument(["reports"], nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path)),
        click.Option(["--plot", "folder"], required=True, type=click.Path(file_okay=False, path_type=Path),
                     help="The folder to draw into."),
    ],
    help="Draw the plots of reports that were written with --json.",
)  # fmt: skip
