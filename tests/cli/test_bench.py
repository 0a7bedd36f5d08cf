"""`faultline bench`: scenarios by name, reports to keep, plots, and nothing left behind."""

import dataclasses
import json
import signal
import sys
import time

import psycopg
import pytest

from faultline.errors import FaultlineError
from faultline.lab.bench.scenario_registry import SCENARIOS


def databases_of(pid, dsn):
    with psycopg.connect(dsn) as conn:
        found = conn.execute(
            "select datname from pg_database where datname like %s", [f"faultline_bench_{pid}_%"]
        )
        return found.fetchall()


def test_without_a_name_the_scenarios_are_listed(run):
    told = run("bench")

    assert told.exit_code == 0
    for name, scenario in SCENARIOS.items():
        assert f"{name} " in told.stdout
        assert scenario.summary.split(":")[0][:20] in told.stdout


def test_a_scenario_prints_a_table_and_writes_its_report_and_its_plots(run, server, tmp_path):
    pytest.importorskip("matplotlib")
    told = run(
        "bench", "drain", "--quick", "--workers", "1", "--dsn", server.dsn(),
        "--json", tmp_path / "drain.json", "--plot", tmp_path / "plots",
    )  # fmt: skip

    assert told.exit_code == 0, told.output
    assert "jobs/s" in told.stdout
    report = json.loads((tmp_path / "drain.json").read_text())
    assert report["parameters"] == {"jobs": [300], "workers": [1], "keep": ["full"]}
    (row,) = report["rows"]
    for figure in ("jobs_per_second", "wal_bytes_per_job", "enqueued_per_second", "worker_mb"):
        assert row[figure] > 0
    assert (tmp_path / "plots/drain-workers.svg").exists()


def test_without_matplotlib_the_report_is_written_all_the_same(run, server, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    told = run(
        "bench", "enqueue", "--batches", "10", "--seconds", "0.1", "--dsn", server.dsn(),
        "--json", tmp_path / "enqueue.json", "--plot", tmp_path / "plots",
    )  # fmt: skip

    assert told.exit_code == 0, told.output
    assert "pip install faultline-queue[bench]" in told.stderr
    assert json.loads((tmp_path / "enqueue.json").read_text())["rows"]
    assert not list((tmp_path / "plots").glob("*"))


def test_reports_that_were_written_can_be_drawn_later(run, server, tmp_path):
    pytest.importorskip("matplotlib")
    options = ("--batches", "1,10", "--seconds", "0.1", "--dsn", server.dsn())
    run("bench", "enqueue", *options, "--json", tmp_path / "enqueue.json")

    told = run("bench", "draw", tmp_path / "enqueue.json", "--plot", tmp_path)

    assert told.exit_code == 0, told.output
    assert (tmp_path / "enqueue-rate.png").exists()


def test_what_is_no_report_is_refused(run, tmp_path):
    (tmp_path / "other.json").write_text("{}")

    told = run("bench", "draw", tmp_path / "other.json", "--plot", tmp_path)

    assert told.exit_code == 2
    assert "is not a report" in told.stderr


@pytest.mark.parametrize("words", [("--jobs", "many"), ("--jobs", "-1"), ("--jobs", "")])
def test_a_size_that_is_no_number_is_refused(run, words):
    assert run("bench", "drain", *words).exit_code == 2


def test_of_all_scenarios_one_that_fails_does_not_stop_the_others(run, server, tmp_path, monkeypatch):
    def broken(stand, size):
        raise FaultlineError("the workers are on strike")

    enqueue = SCENARIOS["enqueue"]
    chosen = {"broken": dataclasses.replace(enqueue, name="broken", cases=broken), "enqueue": enqueue}
    monkeypatch.setattr("faultline.cli.lab.bench.run.SCENARIOS", chosen)

    told = run("bench", "all", "--quick", "--dsn", server.dsn(), "--json", tmp_path / "reports")

    assert told.exit_code == 1
    assert "broken came to no end: the workers are on strike" in told.stderr
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["enqueue.json"]


def test_an_interrupted_bench_leaves_nothing_behind(start, server):
    bench = start("bench", "sustained", "--seconds", "60", "--dsn", server.dsn())
    until = time.monotonic() + 60
    while not databases_of(bench.pid, server.dsn()):
        assert bench.poll() is None, bench.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)

    bench.send_signal(signal.SIGINT)
    _, said = bench.communicate(timeout=60)

    assert bench.returncode == 130, said
    assert databases_of(bench.pid, server.dsn()) == []
