"""Bars with whiskers from the lowest to the highest repeat: `python -m benchmarks.peers.plots RESULTS TO`."""

import sys
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.ticker import ScalarFormatter

from benchmarks.peers import page
from benchmarks.peers.figures import Measure, Run, Spread
from benchmarks.peers.tables import PLOTS

matplotlib.use("agg")

from matplotlib import pyplot  # after the choice of backend: there may be no display

OUR_COLOUR, PEER_COLOUR = "#c2410c", "#94a3b8"


def main(results: Path, folder: Path) -> None:
    run = Run(page.load(results)[0])
    folder.mkdir(parents=True, exist_ok=True)
    matplotlib.rcParams["svg.hashsalt"] = "faultline"  # the same figures give the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # words stay words, and the file small
    for measure, name in PLOTS.items():
        if run.ranked(measure):
            draw(run, measure, folder / name)


def draw(run: Run, measure: Measure, path: Path) -> None:
    """One measure of every system, the best on top."""
    ranked = run.ranked(measure)[::-1]
    names = [name for name, _ in ranked]
    middles = [spread.middle for _, spread in ranked]
    whiskers = [
        [spread.middle - spread.low for _, spread in ranked],
        [spread.high - spread.middle for _, spread in ranked],
    ]
    colours = [OUR_COLOUR if run.is_ours(name) else PEER_COLOUR for name in names]
    figure, axes = pyplot.subplots(figsize=(8, 0.36 * len(names) + 1.1))
    axes.barh(names, middles, xerr=whiskers, color=colours, error_kw={"capsize": 3, "elinewidth": 1})
    for place, (_, spread) in enumerate(ranked):
        axes.annotate(
            f"{spread.middle:{measure.form}}", (spread.high, place), xytext=(6, 0),
            textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    words = ["more is better" if measure.more_is_better else "less is better", *scale(axes, measure, ranked)]
    axes.set_title(f"{measure.title} ({measure.unit}, {', '.join(words)})", fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    figure.tight_layout()
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=140, metadata={"Software": None})
    pyplot.close(figure)


def scale(axes: Any, measure: Measure, ranked: list[tuple[str, Spread]]) -> list[str]:
    """Times differ by powers of ten, so their axis is logarithmic; answers what to say about it."""
    lowest = min(spread.low for _, spread in ranked)
    highest = max(spread.high for _, spread in ranked)
    if measure.unit == "ms" and lowest > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.set_xlim(lowest / 2, highest * 2)
        return ["logarithmic"]
    axes.set_xlim(0, highest * 1.14)
    return []


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
