"""A failure as a user meets it: in the worker's log, in the row, in `jobs show` and in JobDead."""

import json
import subprocess
import sys

import pytest

from faultline import Faultline
from faultline.errors import JobDead
from faultline.store import calls
from tests.support import enqueue

APP = """
import json
from faultline import Dead, Faultline

app = Faultline()


def read(body):
    return json.loads(body)


@app.task(max_attempts=2)
def parse(body: str) -> None:
    read(body)


@app.task(max_attempts=1)
async def fragile() -> None:
    raise ValueError("no such order")


@app.task(max_attempts=1, run="process")
def apart() -> None:
    raise ValueError("no such order, apart")


@app.task
async def hopeless() -> None:
    raise Dead("the account is closed")


@app.task(max_attempts=1)
def deep(n: int) -> None:
    if n == 0:
        raise ValueError("the bottom")
    deep.spec.handler(n - 1)
"""
NO_UVLOOP = "import sys; sys.modules['uvloop'] = None; from faultline.cli.root import main; main()"


@pytest.fixture
def failing(shop):
    (shop / "failing_under_test.py").write_text(APP)
    return shop


@pytest.fixture
def drained(failing, start, database, store):
    """Run a worker on what was enqueued; gives its log lines, by event."""

    def drained(*jobs, concurrency=1):
        for task, args in jobs:
            enqueue(store, task=task, args=args, max_attempts=2 if task == "parse" else 1)
        worker = start(
            "worker", "failing_under_test:app", "--jobs", str(len(jobs)), "--dsn", database,
            "--concurrency", str(concurrency),
        )  # fmt: skip
        _, said = worker.communicate(timeout=60)
        lines = [json.loads(line) for line in said.splitlines()]
        return [line for line in lines if line.get("event") == "execution_finished"], said

    return drained


def test_a_failure_is_a_warning_with_the_users_own_frames_first(drained):
    (told,), _ = drained(("parse", '{"body": "{"}'))

    assert (told["level"], told["state"]) == ("warning", "queued")
    assert (told["attempt"], told["max_attempts"]) == (1, 2)
    assert told["error"].startswith("JSONDecodeError: ")
    frames = [line for line in told["frames"].splitlines() if line.startswith("  File")]
    assert "failing_under_test.py" in frames[0]
    assert frames[0].endswith("in read")
    assert frames[1].endswith("in parse")
    assert "json/decoder.py" in frames[2]
    assert "/faultline/" not in told["frames"]


@pytest.mark.parametrize("task", ["fragile", "apart"])
def test_a_death_is_an_error_that_says_dead(drained, task):
    (told,), _ = drained((task, "{}"))

    assert (told["level"], told["state"]) == ("error", "dead")
    assert told["error"].startswith("ValueError: no such order")
    assert told["frames"].splitlines()[0].endswith(f"in {task}")


def test_a_job_that_its_handler_gives_up_is_an_error_that_says_why(drained):
    (told,), _ = drained(("hopeless", "{}"))

    assert (told["level"], told["state"], told["error"]) == ("error", "dead", "the account is closed")


def test_on_a_terminal_the_frames_are_lines_below_the_line(failing, start, database, store):
    enqueue(store, task="fragile", args="{}", max_attempts=1)
    worker = start("worker", "failing_under_test:app", "--jobs", "1", "--dsn", database, "--log", "lines")
    _, said = worker.communicate(timeout=60)
    lines = said.splitlines()

    at = next(place for place, line in enumerate(lines) if "execution_finished" in line)
    assert " ERROR " in lines[at]
    assert "state=dead" in lines[at]
    assert "ValueError: no such order" in lines[at]
    assert lines[at + 1].endswith("in fragile")
    assert 'raise ValueError("no such order")' in lines[at + 2]


def test_where_uvloop_is_absent_no_failure_is_caused_by_that(failing, database, store):
    job = enqueue(store, task="fragile", args="{}", max_attempts=1)
    words = ["worker", "failing_under_test:app", "--jobs", "1", "--dsn", database]
    subprocess.run([sys.executable, "-c", NO_UVLOOP, *words], check=True, capture_output=True, timeout=60)

    error = store.run(calls.get(job)).error
    assert error.startswith("out of attempts: ValueError: no such order\n")
    assert "caused by" not in error


def test_an_error_of_our_own_shows_no_frames_of_ours(drained, store):
    drained(("deep", '{"m": 300}'))
    (job,) = store.run(calls.list_jobs("dead", None, None, None, 5))

    assert "BadArguments" in job.error
    assert "faultline/" not in job.error


def test_a_deep_error_is_cut_in_its_middle_in_the_row_in_show_and_in_jobdead(drained, on, store, database):
    drained(("deep", '{"n": 300}'))
    (job,) = store.run(calls.list_jobs("dead", None, None, None, 5))

    assert "... 289 frames left out ..." in job.error
    assert "raise ValueError" in job.error.splitlines()[2]
    shown = on("jobs", "show", job.id).stdout
    assert shown.index("raise ValueError") < shown.index("characters in all; --full shows them")
    with Faultline(database) as app:
        told = str(JobDead(app.get(job.id)))
    dead = f"job {job.id} (deep) is dead after attempt 1 of 1"
    assert told.startswith(f"{dead}: out of attempts: ValueError: the bottom\n")
    assert len(told) < 2_300


def test_a_policy_that_gives_up_keeps_the_error_it_gave_up_on(failing, start, database, store):
    source = (
        "from faultline import Faultline\napp = Faultline()\n"
        "@app.task(retry=lambda attempt, error: None)\nasync def once() -> None: raise OSError('down')\n"
    )
    (failing / "giving_up_under_test.py").write_text(source)
    job = enqueue(store, task="once", args="{}")
    start("worker", "giving_up_under_test:app", "--jobs", "1", "--dsn", database).communicate(timeout=60)

    error = store.run(calls.get(job)).error
    assert error.startswith("the retry policy gave up after attempt 1: OSError: down\n")
