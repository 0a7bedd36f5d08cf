"""Every scenario runs at its quick size: it says what it promises to say, and every job of it ends once."""

import dataclasses
import json

import pytest

from faultline.lab.bench import bench_report as reports
from faultline.lab.bench.scenario_registry import SCENARIOS

SHORT = {"drain", "failing", "keyed"}
EVERY = [pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in SCENARIOS]

ENDS = {"lost": 0, "succeeded_twice": 0, "died": 0}


# One test for each: what it asserts is read from one run, which takes seconds.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", EVERY)
def test_every_job_ends_once_and_every_figure_is_there(name, server, tmp_path):
    scenario = SCENARIOS[name]

    report = reports.run(scenario, scenario.quick, server.dsn(), lambda *said: None, every=0.1)

    every_job_ends_once(report)
    every_column_has_figures(report, scenario)
    gauges_are_read_together(report)
    the_report_survives_its_file(report, tmp_path / "report.json")
    assert report.parameters == dataclasses.asdict(scenario.quick)


def every_job_ends_once(report):
    rows = [row for row in report.rows if "lost" in row]
    assert rows or report.scenario == "idle"
    for row in rows:
        assert {what: row[what] for what in ENDS} == ENDS
        assert row["jobs"] > 0


def every_column_has_figures(report, scenario):
    for key in scenario.columns.split():
        assert any(key in row for row in report.rows), f"no row has {key}"


def gauges_are_read_together(report):
    for series in report.series:
        assert series.seconds
        assert series.seconds == sorted(series.seconds)
        for values in series.values.values():
            assert len(values) == len(series.seconds)


def the_report_survives_its_file(report, path):
    report.write(path)
    assert reports.read(path).document() == json.loads(json.dumps(report.document()))
