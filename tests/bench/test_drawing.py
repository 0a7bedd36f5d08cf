"""Plots: drawn where matplotlib is there, and a clear word where it is not."""

import sys

import pytest

from faultline.errors import ConfigError
from faultline.lab.bench.bench_report import BenchReport
from faultline.lab.bench.measure.sampler import Series
from faultline.lab.bench.plots.drawing import draw
from faultline.lab.bench.plots.plot import Bars, Curve, OverTime
from faultline.lab.bench.scenario_registry import SCENARIOS

CURVE = Curve(name="rate", title="Rate by workers", x="workers", y=("jobs_per_second",), by="keep")
BARS = Bars(name="bars", title="Share", x="kind", y="of_ideal", by="handler_ms")
OVER_TIME = OverTime(name="time", title="Claims", y="claim_ms")


@pytest.fixture
def report() -> BenchReport:
    series = Series("800/s", [1.0, 2.0, 3.0], {"claim_ms": [0.5, None, 0.6]}, [("pinned", 1.5)])
    rows = [
        {"workers": 1, "jobs_per_second": 20_000.0, "keep": "full"},
        {"workers": 2, "jobs_per_second": 30_000.0, "keep": "full"},
        {"workers": 1, "jobs_per_second": 25_000.0, "keep": "nothing"},
        {"kind": "thread", "of_ideal": 0.8, "handler_ms": 1},
    ]
    return BenchReport(scenario="drain", when="", machine={}, parameters={}, rows=rows, series=[series])


@pytest.mark.parametrize("plot", [CURVE, OVER_TIME], ids=lambda plot: plot.name)
def test_each_plot_becomes_a_png_and_an_svg(report, plot, tmp_path):
    pytest.importorskip("matplotlib")

    files = draw(report, (plot,), tmp_path / "plots")

    assert [path.name for path in files] == [f"drain-{plot.name}.png", f"drain-{plot.name}.svg"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert plot.title in files[1].read_text()


def test_bars_stand_side_by_side(report, tmp_path):
    pytest.importorskip("matplotlib")
    kept = [row for row in report.rows if "kind" in row]

    files = draw(
        BenchReport(scenario="handlers", when="", machine={}, parameters={}, rows=kept), (BARS,), tmp_path
    )

    assert "80%" in files[1].read_text()


def test_a_plot_without_figures_is_not_drawn(report, tmp_path):
    pytest.importorskip("matplotlib")

    assert draw(report, (OverTime(name="none", title="", y="unknown"),), tmp_path) == []


def test_the_same_report_gives_the_same_svg(report, tmp_path):
    pytest.importorskip("matplotlib")

    first, again = (draw(report, (CURVE,), tmp_path / name)[1].read_bytes() for name in ("a", "b"))

    assert first == again


def test_without_matplotlib_it_says_what_to_install(report, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(ConfigError, match=r"pip install faultline-queue\[bench\]"):
        draw(report, (CURVE,), tmp_path)


def test_every_plot_of_every_scenario_has_a_name_of_its_own():
    for scenario in SCENARIOS.values():
        names = [plot.name for plot in scenario.plots]
        assert len(names) == len(set(names))
