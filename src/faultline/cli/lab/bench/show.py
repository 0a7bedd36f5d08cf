"""A report for people: a table, remarks, files."""

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from faultline.cli.tables import draw, number, word
from faultline.cli.terminal import Terminal
from faultline.errors import ConfigError
from faultline.lab.bench.bench_report import BenchReport
from faultline.lab.bench.plots.drawing import draw as draw_plots
from faultline.lab.bench.plots.figures import figure
from faultline.lab.bench.scenario import BenchScenario


def give(
    terminal: Terminal,
    scenario: BenchScenario,
    report: BenchReport,
    json_file: Path | None,
    plots: Path | None,
) -> None:
    """Show a report and write it down; without matplotlib the figures are written all the same."""
    terminal.show(report.document(), lambda: table(scenario, report))
    if json_file is not None:
        report.write(json_file)
        terminal.remark(f"written: {json_file}")
    if plots is not None:
        give_plots(terminal, scenario, report, plots)


def give_plots(terminal: Terminal, scenario: BenchScenario, report: BenchReport, folder: Path) -> None:
    try:
        for path in draw_plots(report, scenario.plots, folder):
            terminal.remark(f"drawn: {path}")
    except ConfigError as missing:
        terminal.remark(f"nothing was drawn: {missing}")


def table(scenario: BenchScenario, report: BenchReport) -> RenderableType:
    """A line a case."""
    keys = scenario.columns.split()
    figures = [figure(key) for key in keys]
    columns = [word(each.heading) if each.form == "s" else number(each.heading) for each in figures]
    rows = [[each.text(row.get(key)) for key, each in zip(keys, figures, strict=True)] for row in report.rows]
    head = Text(f"{scenario.name}: {scenario.summary} ({report.seconds:.0f} s)", style="bold")
    remarks = [Text(remark, style="dim") for remark in report.remarks]
    return Group(head, draw(columns, rows, "nothing was measured"), *remarks)
