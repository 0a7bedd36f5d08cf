"""`faultline drill` lists drills, plays one or all, and says in its exit code whether promises were kept."""

import json

import pytest

from faultline.lab.drills.registry import DRILLS


@pytest.fixture
def whole_list():
    """All drills; whatever a test leaves out is back after it, in its old place."""
    kept = dict(DRILLS)
    yield tuple(kept)
    DRILLS.clear()
    DRILLS.update(kept)


def test_alone_it_lists_every_drill_and_what_it_needs(run):
    result = run("drill", "--output", "json")

    listed = json.loads(result.stdout)
    assert [drill["name"] for drill in listed] == list(DRILLS)
    assert {drill["needs"] for drill in listed} >= {"a database", "a server of its own"}


def test_all_on_a_dsn_skips_loudly_what_needs_a_server_of_its_own(on, whole_list):
    skipped = [name for name, drill in DRILLS.items() if drill.needs != "a database"]
    for name in [name for name in whole_list if name not in ("worker-crash", *skipped)]:
        del DRILLS[name]

    result = on("drill", "all", "--json", "--report", "drills.html")

    assert result.exit_code == 0, result.output
    told = {drill["name"]: drill for drill in json.loads(result.stdout)["drills"]}
    assert told["worker-crash"]["verdict"] == "kept"
    assert told["worker-crash"]["counts"]["killed"] == 1
    assert {name for name, drill in told.items() if drill["verdict"] == "skipped"} == set(skipped)
    assert all("needs a server of its own" in told[name]["skipped"] for name in skipped)


def test_a_drill_that_needs_a_server_of_its_own_is_refused_on_a_dsn(on):
    result = on("drill", "database-restart")

    assert result.exit_code == 2
    assert "needs a server of its own" in result.stderr
