"""`faultline schedules`: what an operator sees and does."""

import pytest

from faultline.cli.exit_codes import ERROR, USAGE
from faultline.store import calls


@pytest.fixture
def nightly(on):
    result = on(
        "schedules", "set", "nightly", "--task", "clean_up", "--cron", "0 3 * * *", "--tz", "Europe/Berlin",
        "--args", '{"days": 30}',
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return result


def test_a_schedule_is_set_listed_and_shown(on, ask, nightly):
    assert "schedule nightly made: 0 3 * * * Europe/Berlin" in nightly.stdout
    assert "nightly" in on("schedules", "list").stdout
    assert '{"days": 30}' in on("schedules", "show", "nightly").stdout
    (listed,) = ask("schedules", "list")
    assert (listed["when"], listed["state"], listed["app"]) == ("0 3 * * * Europe/Berlin", "active", None)
    shown = ask("schedules", "show", "nightly")
    assert (len(shown["next"]), shown["occurrences"]) == (5, [])
    again = ask("schedules", "set", "nightly", "--task", "clean_up", "--every", "5m")
    assert (again["done"], again["when"]) == ("changed", "every 5m")


def test_the_next_times_of_a_schedule_or_of_an_expression(on, run, ask, nightly):
    assert len(ask("schedules", "next", "nightly", "--count", "3")) == 3
    tried = run("schedules", "next", "--cron", "0 3 * * *", "--tz", "Europe/Berlin")
    assert tried.stdout.splitlines()[0] == "At 03:00 every day"
    assert tried.stdout.count("03:00:00 CE") == 5


def test_it_is_paused_resumed_triggered_and_deleted(on, ask, store, nightly):
    assert "paused" in on("schedules", "pause", "nightly", "--reason", "disk full").stdout
    assert ask("schedules", "next", "nightly") == []
    assert "paused" in on("schedules", "list").stdout
    assert "resumed" in on("schedules", "resume", "nightly").stdout
    made = ask("schedules", "trigger", "nightly")
    assert ask("jobs", "show", made["job_id"])["schedule"][0]["name"] == "nightly"
    assert "nightly, triggered" in on("jobs", "show", made["job_id"]).stdout
    assert [one["how"] for one in ask("schedules", "history", "nightly")] == ["triggered"]
    refused = on("schedules", "delete", "nightly")
    assert (refused.exit_code, "--yes" in refused.stderr) == (USAGE, True)
    assert on("schedules", "delete", "nightly", "--yes").exit_code == 0
    assert ask("schedules", "list") == []
    assert [act.reason for act in store.run(calls.acts(verb="pause_schedule"))] == ["disk full"]


def test_a_backfill_is_previewed_and_done_once(on, ask):
    on("schedules", "set", "h", "--task", "t", "--cron", "@hourly")
    since = ["--since", "2026-07-01T00:00Z", "--until", "2026-07-01T05:00Z"]
    assert [one["is_new"] for one in ask("schedules", "backfill", "h", *since, "--preview")] == [True] * 5
    assert on("schedules", "backfill", "h", *since).exit_code == USAGE
    assert "5 jobs enqueued" in on("schedules", "backfill", "h", *since, "--yes").stdout
    assert "0 jobs enqueued, 5 had one already" in on("schedules", "backfill", "h", *since, "--yes").stdout
    wide = on("schedules", "backfill", "h", "--since", "2020-01-01T00:00Z", "--yes")
    assert (wide.exit_code, "at most 1,000 jobs" in wide.stderr) == (USAGE, True)
    edge = on("schedules", "backfill", "h", "--since", "0001-01-01T00:00+14:00", "--yes")
    assert (edge.exit_code, "2000 to 2199" in edge.stderr) == (USAGE, True), edge.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["set", "a", "--task", "t", "--cron", "0 25 * * *"], "0 25 * * *\n      ^^\nfaultline: the hour of"),
        (["set", "a", "--task", "t", "--cron", "0 3 30 2 *"], "never occurs"),
        (["set", "a", "--task", "t", "--cron", "* 2 * 3 7L", "--tz", "Europe/Berlin"], "never occurs"),
        (["next", "--cron", "* 2 * 3 7L", "--tz", "Europe/Berlin"], "never occurs"),
        (["set", "a", "--task", "t", "--cron", "0 3 * * *", "--tz", "Berlin"], "did you mean Europe/Berlin"),
        (["set", "a", "--task", "t"], "--cron, --every or --at"),
        (["set", "a", "--task", "t", "--every", "5m", "--cron", "@daily"], "--cron, --every or --at"),
        (["set", "a", "--task", "t", "--every", "1ms"], "from 1s to 366d"),
        (["set", "a", "--task", "t", "--every", "5m", "--tz", "UTC"], "goes with a cron expression"),
        (["set", "a", "--task", "t", "--at", "2001-01-01T00:00Z"], "has passed"),
        (["set", "a", "--task", "t", "--every", "5m", "--jitter", "2d"], "jitter"),
        (["set", "a", "--task", "t", "--every", "5m", "--args", "[1]"], "JSON list"),
        (["set", "a b", "--task", "t", "--every", "5m"], "cannot be a schedule name"),
        (["next"], "name a schedule"),
        (["next", "--cron", "* * * *"], "has 4"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(on, ask, words, said):
    result = on("schedules", *words)
    assert (result.exit_code, said in result.stderr) == (USAGE, True), result.stderr
    assert ask("schedules", "list") == []


@pytest.mark.parametrize("verb", ["show", "pause", "resume", "trigger", "next", "history"])
def test_a_mistyped_name_is_told_with_the_near_one(on, nightly, verb):
    result = on("schedules", verb, "nigthly")
    assert result.exit_code == ERROR
    assert "did you mean nightly" in result.stderr


def test_the_schedules_of_an_app_are_synced_by_command(on, ask, tmp_path):
    (tmp_path / "scheduled_shop.py").write_text(
        "from faultline import Faultline, every\n"
        "app = Faultline(name='shop', release=3)\n"
        "@app.schedule(every(minutes=5))\n"
        "@app.task\n"
        "def tick() -> None: ...\n"
    )
    assert [one["state"] for one in ask("schedules", "sync", "scheduled_shop")] == ["new"]
    assert ask("schedules", "show", "tick")["release"] == "3"
    refused = on("schedules", "set", "tick", "--task", "tick", "--every", "1m")
    assert "comes from the code of app shop" in refused.stderr
