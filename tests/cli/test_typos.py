"""A name typed wrong: it never looks like success, and what was meant is told."""

import json
import re
from pathlib import Path

import pytest

import faultline
from faultline.job import JobState
from faultline.store import calls
from tests.support import enqueue


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["wroker", "shop:app"], "there is no command 'wroker'; did you mean worker or workers?"),
        (["jobs", "lst"], "did you mean list?"),
        (["pause", "billing"], "did you mean `faultline queues pause` or `faultline schedules pause`?"),
        (["list"], "did you mean `faultline jobs list` or `faultline queues list` or `faultline limits"),
        (["help"], "write `faultline --help`"),
        (["jobs", "help"], "write `faultline jobs --help`"),
        (["worker", "shop_under_test:app", "-q", "billing:5"], "is written billing=5"),
        (["frobnicate"], "there is no command 'frobnicate'. See `faultline --help`."),
        (["worker", "shop:app", "--concurency", "5"], "--concurrency"),
        (["jobs", "list", "--state", "ded"], "did you mean dead?"),
        (["jobs", "list", "--state", "waiting"], "did you mean queued?"),
        (["jobs", "list", "--state", "failed"], "did you mean queued, while attempts are left, or dead?"),
        (
            ["enqueue", "mail", "--run-at", "2030-01-31T09:00"],
            "write 2030-01-31T09:00Z for UTC, or 2030-01-31",
        ),
        (["enqueue", "mail", "--key", ""], "it is empty; give it a value"),
        (["worker", "shop_under_test:app", "--server", "http://q:8000"], "write grpc://q:8001"),
        (["worker", "shop_under_test:app", "--server", "https://q"], "write grpcs://q:8001"),
        (
            ["jobs", "list", "--dsn", "postgresql+asyncpg://a:hush@c/d"],
            "takes it without that: postgresql://a@c/d",
        ),
        (
            ["jobs", "list", "--dsn", "postgresql://a:hush@127.0.0.1:1/d?connect_timeout=abc"],
            "connect_timeout is a whole number; got 'abc'",
        ),
        (
            ["jobs", "list", "--dsn", "postgresql://a:hush@127.0.0.1:1/d?sslmod=require"],
            "sslmod is no parameter (did you mean sslmode?)",
        ),
        (["enqueue", "chrage", "--app", "shop_under_test:app"], "did you mean charge?"),
    ],
)
def test_what_was_meant_is_told(run, shop, words, said):
    result = run(*words)

    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "hush" not in result.output


@pytest.mark.parametrize("words", [["queues", "pause"], ["queues", "keep", "nothing"], ["queues", "resume"]])
def test_a_queue_that_was_never_named_is_not_acted_on(on, ask, store, words):
    enqueue(store, queue="billing")

    result = on(*words, "billing", "bilings")

    assert result.exit_code == 2
    assert "no queue is called bilings; did you mean billing? Nothing was done." in result.stderr
    assert [(queue["queue"], queue["paused"], queue["keep"]) for queue in ask("queues", "list")] == [
        ("billing", False, "full")
    ]


def test_a_queue_can_be_paused_before_its_first_job_when_that_is_said(on, ask):
    assert on("queues", "pause", "mail", "--new").exit_code == 0
    assert on("queues", "keep", "outline", "mail").exit_code == 0
    assert [(queue["queue"], queue["paused"], queue["keep"]) for queue in ask("queues", "list")] == [
        ("mail", True, "outline")
    ]


def test_an_empty_list_says_that_its_queue_is_not_there(on, store):
    enqueue(store, queue="billing")

    assert "no queue is called biling; did you mean billing?" in on("jobs", "list", "-q", "biling").stderr
    assert "no queue" not in on("jobs", "list", "-q", "billing", "--state", "dead").stderr
    assert "no queue is called biling" in on("jobs", "replay", "--all", "-q", "biling", "--yes").stderr


def test_an_empty_list_says_that_no_recent_job_is_of_its_task(on, store):
    enqueue(store, task="charge")

    assert "is of the task chrage; did you mean charge?" in on("jobs", "list", "--task", "chrage").stderr
    assert "is of the task" not in on("jobs", "list", "--task", "charge", "--state", "dead").stderr
    assert "did you mean charge?" in on("jobs", "replay", "--all", "--task", "chrage", "--yes").stderr


def test_a_task_that_nothing_knows_is_told_when_it_is_enqueued_without_its_app(on, store, shop):
    enqueue(store, task="charge")

    typed = on("enqueue", "chrage", "{}")
    assert typed.exit_code == 0
    assert "newest jobs is of the task chrage; did you mean charge? Nothing checked the name" in typed.stderr
    assert "newest" not in on("enqueue", "charge", "{}").stderr
    assert on("enqueue", "another", "{}", "--quiet").stderr == ""
    checked = on("enqueue", "greet", '{"name": "Ada"}', "--app", "shop_under_test:app")
    assert (checked.exit_code, checked.stderr) == (0, "")


def test_a_worker_says_which_of_its_queues_no_task_names(start, shop, database):
    worker = start(
        "worker", "shop_under_test:app", "-q", "biling,default", "--until-empty", "--dsn", database
    )
    _, said = worker.communicate(timeout=60)

    assert worker.returncode == 0, said
    told = [line["message"] for line in map(json.loads, said.splitlines()) if line["level"] == "warning"]
    assert len(told) == 1
    assert "queue biling is served, but no task of this app names it; did you mean billing?" in told[0]


def test_a_worker_says_which_queues_of_its_tasks_it_does_not_serve(start, shop, database):
    worker = start("worker", "shop_under_test:app", "-q", "billing=2", "--until-empty", "--dsn", database)
    _, said = worker.communicate(timeout=60)
    all_of_them = start("worker", "shop_under_test:app", "--until-empty", "--dsn", database)
    _, also_said = all_of_them.communicate(timeout=60)

    assert worker.returncode == 0, said
    told = [line for line in map(json.loads, said.splitlines()) if "not served" in line.get("message", "")]
    assert [(line["level"], line["message"]) for line in told] == [
        ("info", "not served by this worker: queue default (task greet); other workers have to, or --queues")
    ]
    assert "not served" not in also_said


def test_doctor_names_queues_with_due_jobs_and_no_worker(on, store):
    for queue in ("billing", "mail", "quiet"):
        enqueue(store, queue=queue)
    store.run(calls.worker_started("here", "host", 1, ["mail"], 10, "1"))
    assert on("queues", "pause", "quiet").exit_code == 0

    told = json.loads(on("--output", "json", "doctor").stdout)["checks"]
    (found,) = [check for check in told if check["name"] == "queues"]

    assert found["grade"] == "warn"
    assert found["said"] == "jobs wait where no worker serves: 1 due in billing"
    assert "--queues billing" in found["remedy"]


def test_the_states_of_the_command_line_are_those_that_the_view_tells():
    view = Path(faultline.__file__).with_name("sql") / "views" / "jobs.sql"
    told = set(re.findall(r"(?:select job\.id, |then |else )'(\w+)'", view.read_text()))

    # Of the ledger the view tells the last entry of a job that ended otherwise than dead.
    assert told | {"succeeded", "cancelled"} == set(JobState)


def test_a_dsn_that_is_none_is_not_understood_and_nothing_was_tried(on):
    told = on("--dsn", "postgres//app@db/shop", "jobs", "list")

    assert told.exit_code == 2
    assert "neither a URL" in told.stderr
    assert "--dsn" in told.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("jobs", "cancel", "1", "--yes", "--dsn", ""), ("--dsn", "", "jobs", "list"),
        ("enqueue", "greet", "{}", "--app", ""), ("worker", "shop:app", "--queues", ""),
    ],
)  # fmt: skip
def test_an_empty_option_is_refused_and_means_nothing_else(on, words):
    """A shell variable that is not set: cancelled in the wrong database, checked against no app."""
    told = on(*words)

    assert told.exit_code == 2
    assert "it is empty; give it a value, or leave it out" in told.stderr


def test_a_key_for_a_queue_that_is_not_there_is_made_and_told(on, store):
    enqueue(store, queue="billing")

    told = on("keys", "create", "shop", "--scope", "work", "--queue", "bilingg")

    assert told.exit_code == 0
    assert "no queue is called bilingg; did you mean billing?" in told.stderr


SAID = "FAULTLINE_POLER is no setting; did you mean FAULTLINE_POOLER?"


def test_a_variable_that_is_nearly_a_setting_is_remarked_on_stderr(on, monkeypatch):
    monkeypatch.setenv("FAULTLINE_POLER", "transaction")

    told = on("--output", "json", "queues", "list")

    assert (told.exit_code, told.stderr.strip()) == (0, SAID)
    assert json.loads(told.stdout) == []
    assert on("--quiet", "queues", "list").stderr == ""


def test_one_that_means_the_dsn_is_told_once(run, monkeypatch):
    monkeypatch.setenv("FAULTLINE_DNS", "postgresql://app:hush@db/shop")

    told = run("queues", "list")

    assert told.exit_code == 2
    assert told.stderr.count("FAULTLINE_DNS is no setting; did you mean FAULTLINE_DSN?") == 1
    assert "hush" not in told.stderr


def test_a_worker_warns_of_it_in_its_log(database, start, shop):
    words = ("shop_under_test:app", "--dsn", database, "--until-empty", "--log", "json")
    worker = start("worker", *words, FAULTLINE_POLER="")

    said, warned = worker.communicate(timeout=60)

    assert worker.returncode == 0, warned
    lines = [json.loads(line) for line in (said + warned).splitlines()]
    assert [line["level"] for line in lines if line.get("message") == SAID] == ["warning"]
