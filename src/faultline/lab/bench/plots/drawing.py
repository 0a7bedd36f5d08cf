"""Pictures of a report, as PNG and SVG. They need matplotlib, which is an extra: nothing else here does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from faultline.errors import ConfigError
from faultline.lab.bench.bench_report import BenchReport
from faultline.lab.bench.plots.figures import figure
from faultline.lab.bench.plots.plot import Bars, Curve, OverTime, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Line = tuple[str, list[float], list[float]]
"""Its name, and its points."""

# Okabe and Ito's colours, which colour-blind readers can tell apart; with a mark each, for print in grey.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS: Final = ("o", "s", "^", "D", "v", "P", "X")
LEGEND_LETTERS_MAX: Final = 60
STYLE: Final = {
    "font.family": "sans-serif", "font.size": 10, "axes.titlesize": 12, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.grid.axis": "y", "grid.color": "#dddddd", "grid.linewidth": 0.8, "axes.axisbelow": True,
    "legend.frameon": False, "legend.fontsize": 9, "svg.hashsalt": "faultline", "svg.fonttype": "none",
}  # fmt: skip


def draw(report: BenchReport, plots: tuple[Plot, ...], folder: Path) -> list[Path]:
    """Draw every plot the report has figures for; answers the files that were written."""
    with _style():
        folder.mkdir(parents=True, exist_ok=True)
        return [path for plot in plots for path in _draw(report, plot, folder)]


@contextmanager
def _style() -> Iterator[None]:
    try:
        import matplotlib
    except ImportError as error:
        raise ConfigError("plots need matplotlib: pip install faultline-queue[bench]") from error
    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
        yield


def _draw(report: BenchReport, plot: Plot, folder: Path) -> Iterator[Path]:
    from matplotlib.figure import Figure

    picture = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = picture.add_subplot()
    match plot:
        case Curve():
            lines = _curve(axes, report, plot)
        case Bars():
            lines = _bars(axes, report, plot)
        case OverTime():
            lines = _over_time(axes, report, plot)
    if not lines:
        return
    axes.set_title(plot.title)
    if lines > 1:
        letters = sum(len(label) for label in axes.get_legend_handles_labels()[1])
        picture.legend(loc="outside lower center", ncols=4 if letters < LEGEND_LETTERS_MAX else 2)
    yield from _save(picture, folder / f"{report.scenario}-{plot.name}")


def _save(picture: "Figure", stem: Path) -> Iterator[Path]:
    for ending in (".png", ".svg"):
        path = stem.with_suffix(ending)
        metadata = {"Date": None} if ending == ".svg" else {}
        picture.savefig(path, dpi=150, metadata=metadata)
        yield path


def _curve(axes: "Axes", report: BenchReport, plot: Curve) -> int:
    """One line a figure, or one line for each value of `by`; every case a point."""
    lines = [line for key in plot.y for line in _lines(report, plot, key)]
    _lay(axes, lines, marked=True)
    if plot.x_log:
        axes.set_xscale("log")
    _scale_y(axes, lines, log=plot.y_log)
    at = sorted({x for _, xs, _ in lines for x in xs})
    axes.set_xticks(at, [f"{x:,.0f}" for x in at])
    axes.minorticks_off()
    axes.set_xlabel(figure(plot.x).axis)
    axes.set_ylabel(plot.y_label or figure(plot.y[0]).axis)
    return len(lines)


def _names(plot: Curve) -> dict[str, str]:
    """The headings without the words they share: the axis has said those."""
    if plot.names:
        return dict(zip(plot.y, plot.names, strict=True))
    headings = {key: figure(key).heading.split() for key in plot.y}
    shared = set.intersection(*map(set, headings.values())) if len(plot.y) > 1 else set()
    return {key: " ".join(word for word in words if word not in shared) for key, words in headings.items()}


def _lines(report: BenchReport, plot: Curve, key: str) -> Iterator[Line]:
    rows = [row for row in report.rows if row.get(key) is not None and row.get(plot.x) is not None]
    for group in dict.fromkeys(row.get(plot.by) for row in rows):
        points = sorted((row[plot.x], row[key]) for row in rows if row.get(plot.by) == group)
        name = str(group) if plot.by else _names(plot)[key]
        yield name, [x for x, _ in points], [y for _, y in points]


def _over_time(axes: "Axes", report: BenchReport, plot: OverTime) -> int:
    """One line a case; what was done in between is marked once."""
    lines: list[Line] = []
    for series in report.series:
        values = series.values.get(plot.y, [])
        known = [(at, value) for at, value in zip(series.seconds, values, strict=False) if value is not None]
        if known:
            lines.append((series.case, [at for at, _ in known], [value for _, value in known]))
    _lay(axes, lines, marked=False)
    _scale_y(axes, lines, log=plot.y_log)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds")
    axes.set_ylabel(figure(plot.y).axis)
    _mark(axes, report)
    return len(lines)


def _mark(axes: "Axes", report: BenchReport) -> None:
    """A thin line where something was done, with its name if that is not said already."""
    told: set[str] = set()
    for name, at in report.series[0].marks if report.series else []:
        axes.axvline(at, color="#999999", linewidth=0.8, linestyle=(0, (4, 3)))
        if name not in told:
            place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
            axes.annotate(name, (at, 1.0), xytext=(3, -10), color="#666666", fontsize=9, **place)  # type: ignore[arg-type]
        told.add(name)


def _bars(axes: "Axes", report: BenchReport, plot: Bars) -> int:
    """Groups of bars, each with its value on it."""
    groups = list(dict.fromkeys(row[plot.x] for row in report.rows))
    kinds = list(dict.fromkeys(row.get(plot.by) for row in report.rows))
    width = 0.8 / max(1, len(kinds))
    for place, kind in enumerate(kinds):
        rows = {row[plot.x]: row[plot.y] for row in report.rows if row.get(plot.by) == kind}
        at = [groups.index(group) + (place - (len(kinds) - 1) / 2) * width for group in rows]
        label = f"{kind} {figure(plot.by).heading.removeprefix('takes ')}" if plot.by else ""
        bars = axes.bar(at, list(rows.values()), width * 0.92, color=COLOURS[place], label=label)
        axes.bar_label(bars, [figure(plot.y).text(value) for value in rows.values()], fontsize=9, padding=2)
    axes.set_xticks(range(len(groups)), [str(group) for group in groups])
    axes.set_ylabel(figure(plot.y).axis)
    axes.yaxis.set_major_formatter(lambda value, _: figure(plot.y).text(value))
    axes.margins(y=0.12)
    return len(kinds) if groups else 0


def _lay(axes: "Axes", lines: list[Line], *, marked: bool) -> None:
    for place, (name, xs, ys) in enumerate(lines):
        colour = COLOURS[place % len(COLOURS)]
        mark: Any = MARKS[place % len(MARKS)] if marked else None
        axes.plot(xs, ys, label=name, color=colour, marker=mark, markersize=5, linewidth=1.8)


def _scale_y(axes: "Axes", lines: list[Line], *, log: bool) -> None:
    """From zero, or in steps of 1, 2 and 5; numbers as people write them: 20,000 and 0.5, never 2e4."""
    if log:
        from matplotlib.ticker import LogLocator, NullLocator

        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.08 * max((y for _, _, ys in lines for y in ys), default=1.0) or 1.0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
