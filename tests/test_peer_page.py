"""The comparison page says what was measured, losses as plainly as wins."""

import ast
import copy
import doctest
import re
from typing import Any

import pytest

from benchmarks.peers import failure_tables, figures, musts, one_row_tables, options, page, places, tables

META = {
    "backend": "postgres", "versions": {"it": "1.0"}, "settings": "its defaults", "recovery": "",
    "single_note": "", "bulk_note": "",
}  # fmt: skip


def a_row(rate: float, pickup_ms: float = 1.0) -> dict[str, Any]:
    return {
        "single_per_s": rate, "bulk_per_s": rate, "bulk2_per_s": rate, "drain1_per_s": rate,
        "drain2_per_s": rate, "drain1_complete": True,
        "lat_p50": pickup_ms, "lat_p99": pickup_ms, "call_p50": pickup_ms,
        "call_p99": pickup_ms, "drain1_wal_per_job": 500.0, "drain1_killed_per_job": 2.0,
        "drain1_foreign_cores": 0.0, "drain1_disk_us": 100,
    }  # fmt: skip


@pytest.fixture
def data() -> dict[str, Any]:
    rates = {"faultline": 300.0, "faultline keep=nothing": 330.0, "graphile-worker": 100.0, "pg-boss": 90.0}
    return {
        "started": "2000-01-01 00:00:00", "ended": "2000-01-01 01:00:00", "postgres": "PostgreSQL 18.0 on x",
        "pg_settings": {"fsync": "on"}, "commit": "abc1234",
        "machine": {"cores": 2, "processor": "one", "memory_gb": 4.0, "system": "Linux", "python": "3.11"},
        "config": options.Options().told(),
        "meta": {name: dict(META) for name in rates},
        "absent": {},
        "throughput": {name: [a_row(rate * part) for part in (1, 1.1, 0.9)] for name, rate in rates.items()},
        "crash": {}, "zombie": {}, "zombie_mid": {},
    }  # fmt: skip


def test_the_page_is_what_the_generator_makes_of_the_committed_results():
    written = (places.DOCS / "benchmarks.md").read_text()

    assert page.render(*page.load()) == written, "run `make compare-page`"


def test_no_result_names_a_place_on_the_machine_that_made_it():
    for file in places.RESULTS.glob("peers*.json"):
        assert not re.search(r'[\s"\'(](/work|/root|/home|/tmp|/Users)/', file.read_text()), file.name


def test_a_goal_that_is_reached_is_met(data):
    line = goal(data, "Drain, one worker process, faultline |", "graphile-worker")

    assert "3.00" in line
    assert line.endswith("| met |")


def test_a_goal_that_is_missed_is_said_to_be_not_met(data):
    data["throughput"]["graphile-worker"] = [a_row(200.0)]

    assert goal(data, "Drain, one worker process, faultline |", "graphile-worker").endswith("| **not met** |")


def test_less_is_better_for_times(data):
    data["throughput"]["pg-boss"] = [a_row(90.0, pickup_ms=0.5)]

    assert goal(data, "Pickup by an idle worker, p99", "best peer").endswith("| **not met** |")
    assert "**Faultline is behind**: 2.00 ×" in page.render(data, None)


def test_a_goal_beside_a_peer_that_was_not_there_is_not_measured(data):
    assert "not measured in this run" in goal(data, "Drain, one worker process, faultline |", "awa")


def test_the_best_postgresql_peer_is_not_one_on_redis(data):
    data["meta"]["pg-boss"]["backend"] = "redis"
    data["throughput"]["pg-boss"] = [a_row(10_000.0)]

    assert "graphile-worker 100" in goal(data, "Enqueue, one awaited call at a time", "best PostgreSQL peer")


def test_a_system_that_could_not_run_is_named_with_its_reason(data):
    data["absent"] = {"celery": "no redis-server"}

    assert "| celery | absent | could not run here: no redis-server |" in page.render(data, None)


def test_a_drain_that_was_cut_is_marked(data):
    data["throughput"]["pg-boss"][1]["drain1_complete"] = False

    assert "| pg-boss \\* |" in page.render(data, None)


def test_a_step_that_failed_is_named(data):
    data["throughput"]["pg-boss"][2] = {"drain2_error": "RuntimeError()"}

    assert "- pg-boss, repeat 3: `drain2` failed" in page.render(data, None)


def test_a_noisy_machine_is_said_to_be_noisy(data):
    quiet = page.render(data, None)
    for rows in data["throughput"].values():
        for row in rows:
            row["drain1_foreign_cores"] = 0.8

    assert "(quiet)" in quiet
    assert "not a measurement" not in quiet
    assert "not quiet: trust the ratios" in page.render(data, None)
    assert "not a measurement**: others were at work on the machine." in page.render(data, None)


def test_a_short_run_is_called_a_trial(data):
    data["config"]["repeats"] = 1

    assert "This run is a trial, not a measurement**: it was short." in page.render(data, None)


@pytest.fixture
def one_row(data) -> dict[str, Any]:
    """A run of handlers that insert a row; one system was cut, and one is of another carrier of ours."""
    rates = {
        "faultline": 1_500.0,
        "faultline, asyncpg": 1_300.0,
        "graphile-worker": 3_000.0,
        "pg-boss": 900.0,
    }
    row = {"one_row_wal_per_job": 900.0, "one_row_complete": True, "one_row_foreign_cores": 0.0}
    return {
        **copy.deepcopy(data),
        "meta": {name: {**META, "row": f"as {name} does"} for name in rates},
        "throughput": {
            name: [{**row, "one_row_per_s": rate, "one_row_complete": name != "pg-boss"}] * 3
            for name, rate in rates.items()
        },
    }


def test_a_handler_that_inserts_a_row_is_held_against_each_peer(data, one_row):
    text = page.render(data, None, one_row)

    goal = "at least 1 × {} | 1,500 jobs/s | {} | "
    assert (
        goal.format("graphile-worker", "graphile-worker 3,000") + "0.50 (0.50–0.50) | **not met** |" in text
    )
    assert goal.format("pg-boss", "pg-boss 900") + "1.67 (1.67–1.67) | met |" in text
    assert "at least 1 × django-tasks-db | not measured in this run" in text
    assert "**Faultline is behind**: 0.50 × the best peer's figure (graphile-worker)." in text
    assert "| **faultline, asyncpg** | 1,300" in text
    assert "| pg-boss \\* |" in text
    assert "| pg-boss | it 1.0 | as pg-boss does |" in text
    assert "One row, once" not in page.render(data, None)


def test_a_short_run_of_rows_is_a_trial(data, one_row):
    one_row["config"]["rows"] = 100

    assert "trial, not a measurement" in page.render(data, None, one_row)


def test_a_late_worker_that_changed_the_job_is_seen(data):
    failures = copy.deepcopy(data)
    seen = {
        "rerun_after_s": 4.2, "manual_recover_used": False, "effects": [{"by_zombie": True}],
        "rows_before_cont": [{"state": "done"}], "rows_after_cont": [{"state": "failed"}],
    }  # fmt: skip
    refused = {
        **seen,
        "rows_after_cont": [{"state": "done"}],
        "effects": [],
        "refusals": [{"reason": "settled"}],
    }
    failures["zombie"] = {"pg-boss": seen, "faultline": refused}

    text = page.render(data, failures)

    assert "| pg-boss | 4.2 s | **yes** | yes | no |" in text
    assert "| **faultline** | 4.2 s | no | no | settled |" in text


def test_every_picture_of_the_page_is_there_in_both_forms():
    named = re.findall(r"images/(peers-[\w-]+)\.svg", (places.DOCS / "benchmarks.md").read_text())

    assert named
    for name in named:
        assert (places.DOCS / f"images/{name}.svg").exists(), name
        assert (places.DOCS / f"images/{name}.png").exists(), name


def test_every_system_has_an_adapter_that_ends_in_main():
    adapters = [file for file in places.SYSTEMS.glob("[a-z]*") if file.suffix in (".py", ".mjs")]

    assert len(adapters) >= 17
    for file in adapters:
        assert "main(" in file.read_text(), file.name


@pytest.mark.parametrize("module", [figures, musts, tables, failure_tables, one_row_tables, page])
def test_examples_in_docstrings_run(module):
    assert doctest.testmod(module).failed == 0


def test_no_function_of_the_comparison_is_longer_than_a_screen():
    for file in places.HERE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 40, f"{file.name}: {node.name}"


def goal(data: dict[str, Any], what: str, beside: str) -> str:
    lines = musts.table(figures.Run(data))
    return next(line for line in lines if what in f"{line} |" and beside in line)
