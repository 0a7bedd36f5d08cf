"""Events and log lines: whose they are, and nothing in them that does not belong there."""

import io
import json
import logging
import time
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from faultline.job import Job
from faultline.telemetry import (
    EVENTS,
    JsonFormatter,
    LineFormatter,
    configure_logging,
    current,
    describe_error,
    emit,
    install_context,
    printable,
    scrub,
)
from faultline.telemetry.events import LogBudget
from faultline.telemetry.text import ERROR_BYTES_MAX

SECRET = "s3cr3t"
EVIL = "a\x1b[31mred\x07\r\nline \u202eesrever\u2066 \u200bzero \x9bC1 \u2028sep \ud800"


@pytest.fixture
def events():
    """What is emitted in a test, as records."""
    records: list[logging.LogRecord] = []
    log = logging.getLogger("faultline.events")

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record)

    handler = Keep()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield records
    log.removeHandler(handler)
    log.setLevel(before)


@pytest.fixture
def inside_a_job():
    remove = install_context()
    job = Job(7, "charge", "billing", 1, 10, 0, 3, None, datetime(2026, 1, 1, tzinfo=UTC))
    kept = current.set(job)
    yield job
    current.reset(kept)
    remove()


def record(message="hello", **extra):
    made = logging.LogRecord("shop", logging.WARNING, "file", 1, message, None, None)
    made.__dict__.update(extra)
    return made


def test_an_event_carries_its_name_and_facts(events):
    emit(
        "stale_write_blocked",
        logging.WARNING,
        job_id=7,
        stale_token=3,
        current_token=5,
        reason="token_mismatch",
    )

    line = json.loads(JsonFormatter().format(events[0]))

    assert line["event"] == "stale_write_blocked" in EVENTS
    assert line["level"] == "warning"
    assert (line["job_id"], line["stale_token"], line["current_token"]) == (7, 3, 5)


def test_an_event_never_carries_a_claim(events):
    claim = uuid4()

    emit("lease_acquired", job_id=7, claim=claim, proof={"claim": claim})

    for formatter in (JsonFormatter(), LineFormatter()):
        assert str(claim) not in formatter.format(events[0])


def test_an_event_without_a_listener_costs_next_to_nothing():
    log = logging.getLogger("faultline.events")
    before = log.level
    log.setLevel(logging.ERROR)
    started = time.perf_counter()
    for _ in range(10_000):
        emit("heartbeat", job_id=7, token=3)
    spent = time.perf_counter() - started
    log.setLevel(before)

    assert spent < 0.2  # 20 us each would be a fortune; it takes under one


def test_records_made_inside_a_handler_know_the_job(inside_a_job):
    made = logging.getLogger("anything").makeRecord("anything", 20, "f", 1, "m", (), None)

    assert (made.job_id, made.token, made.task) == (7, 3, "charge")  # type: ignore[attr-defined]
    line = json.loads(JsonFormatter().format(made))
    assert (line["job_id"], line["token"], line["task"]) == (7, 3, "charge")
    assert "job_id=7 token=3 task=charge" in LineFormatter().format(made)


def test_the_context_chains_to_the_factory_before_it_and_can_be_removed():
    class Own(logging.LogRecord): ...

    original = logging.getLogRecordFactory()
    logging.setLogRecordFactory(Own)
    try:
        remove = install_context()
        again = install_context()
        made = logging.getLogger("x").makeRecord("x", 20, "f", 1, "m", (), None)
        again()

        assert isinstance(made, Own)
        assert made.job_id is None  # type: ignore[attr-defined]
        remove()
        assert logging.getLogRecordFactory() is Own
    finally:
        logging.setLogRecordFactory(original)


def test_i11_control_and_bidi_characters_are_spelled_out_in_a_line():
    shown = printable(EVIL)

    assert all(char.isprintable() for char in shown)
    assert r"\x1b[31m" in shown
    assert r"\u202e" in shown
    assert r"\r\n" in shown


def test_i11_ordinary_text_of_any_script_is_left_alone():
    for text in ("naïve", "Ελληνικά", "日本語", "עברית", "😀", "a b"):
        assert printable(text) == text


def test_i11_a_log_line_is_one_line_whatever_it_says():
    made = record(EVIL, facts={"queue": EVIL}, event=None)

    for line in (LineFormatter().format(made), JsonFormatter().format(made)):
        assert line.isprintable()
    assert json.loads(JsonFormatter().format(made))["message"] == EVIL


def test_a_traceback_on_a_terminal_keeps_its_lines_and_loses_its_codes():
    try:
        raise ValueError("\x1b[2Jgone")
    except ValueError as error:
        made = record(exc_info=(type(error), error, error.__traceback__))

    lines = LineFormatter().format(made).splitlines()

    assert len(lines) > 2
    assert "\x1b" not in "".join(lines)
    assert json.loads(JsonFormatter().format(made))["error"].endswith("gone")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_i11_an_error_s_text_begins_no_line_of_a_log(end):
    """A line that begins at the margin is a record: who chooses an error's text could write one."""
    forged = f"first{end}12:00:00.000 INFO    faultline.server: forged"
    try:
        raise ValueError(forged)
    except ValueError as error:
        raised = record(exc_info=(type(error), error, error.__traceback__))
    kept = record("failed", facts={"frames": forged, "error": forged})

    for made in (raised, kept):
        _, *more = LineFormatter().format(made).splitlines()
        assert more
        assert all(line.startswith("    ") for line in more)
        assert len(JsonFormatter().format(made).splitlines()) == 1
        assert json.loads(JsonFormatter().format(made))["error"].endswith(forged)


@pytest.mark.parametrize("text", ["a.", "a://b:", "x://u:p@", "password=", "flk_", "a:", "://"])
def test_scrubbing_takes_a_time_in_proportion_to_the_length(text):
    """Handlers log what they were given, at any length: 60 KB of `a.a.a.` took 12 s."""

    def seconds(length):
        began = time.process_time()
        for _ in range(3):
            scrub(text * (length // len(text)) + "@")
        return time.process_time() - began

    assert seconds(200_000) < 60 * (seconds(20_000) + 0.002)


def test_passwords_are_scrubbed_from_every_line():
    dsn = f"postgresql://app:{SECRET}@db/shop"
    made = record(
        f"cannot reach {dsn}", facts={"dsn": dsn, "said": f"password={SECRET}", "why": ValueError(dsn)}
    )

    for formatter in (JsonFormatter(), LineFormatter()):
        assert SECRET not in formatter.format(made)


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://app:{SECRET}@db/shop",
        f"postgresql://app:p@{SECRET}@db/shop",
        f"password={SECRET}",
        f"password = '{SECRET} x'",
        f"'password': '{SECRET}'",
        f'"sslpassword": "{SECRET}"',
        f"PASSWORD={SECRET}&x=1",
    ],
)
def test_scrubbing_finds_a_password_where_dsns_carry_it(text):
    assert SECRET not in scrub(text)


def test_a_log_call_whose_arguments_do_not_fit_still_makes_a_line():
    made = logging.LogRecord("shop", logging.INFO, "file", 1, "%d jobs", ("many",), None)

    assert "many" in LineFormatter().format(made)
    assert "many" in json.loads(JsonFormatter().format(made))["message"]


def test_numbers_too_large_for_javascript_are_written_as_text():
    line = json.loads(JsonFormatter().format(record(facts={"token": 2**53 + 1, "job_id": 7})))

    assert (line["token"], line["job_id"]) == (str(2**53 + 1), 7)


@pytest.fixture
def root():
    log = logging.getLogger()
    handlers, level = list(log.handlers), log.level
    yield log
    log.handlers[:] = handlers
    log.setLevel(level)


def test_json_is_written_where_there_is_no_terminal(root):
    out = io.StringIO()
    configure_logging(out)
    configure_logging(out)  # twice is once

    logging.getLogger("shop").info("hello")

    assert json.loads(out.getvalue())["message"] == "hello"


def test_readable_lines_are_written_to_a_terminal(root, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    out.isatty = lambda: True  # type: ignore[method-assign]
    configure_logging(out, level="debug")

    logging.getLogger("shop").debug("hello")

    assert out.getvalue().endswith("DEBUG   shop: hello\n")


def test_i9_a_huge_error_keeps_its_head_and_its_tail():
    text = describe_error(ValueError("HEAD" + "x" * 50_000_000 + "TAIL"))

    assert text.startswith("ValueError: HEAD")
    assert text.endswith("TAIL")
    assert "shortened from 50,000,008 characters" in text
    assert len(text.encode()) <= ERROR_BYTES_MAX


class Rude(Exception):
    def __str__(self):
        raise RuntimeError("no")


class Stranger(Exception):
    def __str__(self):
        return 5


@pytest.mark.parametrize("error", [Rude(), Stranger()], ids=["raises", "returns no text"])
def test_i9_an_error_that_cannot_be_read_is_still_described(error):
    assert describe_error(error).startswith(f"{type(error).__name__}: (its text could not be read")


def test_i9_an_error_is_described_in_text_that_postgresql_can_hold():
    text = describe_error(ValueError("nul \0, surrogate \ud800, bytes \udcff, é" * 1000))

    assert "\0" not in text
    assert len(text.encode()) <= ERROR_BYTES_MAX
    assert r"nul \x00, surrogate \ud800" in text


def test_an_error_is_described_with_its_place_and_its_cause():
    try:
        try:
            raise KeyError("order")
        except KeyError as error:
            raise ValueError("no such order") from error
    except ValueError as error:
        text = describe_error(error)

    assert text.startswith("ValueError: no such order\n")
    assert "caused by KeyError: 'order'" in text
    assert "test_telemetry.py" in text


def test_errors_that_cause_each_other_are_described_to_an_end():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first

    assert describe_error(first).count("caused by") == 4


def test_an_error_that_was_raised_again_and_again_is_described_once():
    last: OSError | None = None
    for _ in range(3):
        try:
            raise OSError("down") from last
        except OSError as error:
            last = error

    assert describe_error(last).count("OSError: down") == 1


def test_a_group_is_described_with_its_first_error():
    assert "caused by OSError: down" in describe_error(
        ExceptionGroup("two", [OSError("down"), OSError("up")])
    )


def test_passwords_are_not_kept_with_an_error():
    assert SECRET not in describe_error(ValueError(f"postgresql://app:{SECRET}@db/shop"))


def test_the_users_frames_come_first_also_where_their_package_is_installed(tmp_path):
    home = tmp_path / "site-packages" / "shop"
    home.mkdir(parents=True)
    (home / "jobs.py").write_text("def charge(call): return call()")
    names: dict[str, Any] = {}
    exec(compile((home / "jobs.py").read_text(), str(home / "jobs.py"), "exec"), names)
    try:
        names["charge"](lambda: json.loads("{"))
    except ValueError as error:
        error.__traceback__ = error.__traceback__.tb_next  # the handler's own is the outermost
        text = describe_error(error)

    files = [line for line in text.splitlines() if line.startswith("  File")]
    assert "test_telemetry.py" in files[0]
    assert "site-packages/shop/jobs.py" in files[1]
    assert text.index("raised below it, in libraries:") < text.index("json/decoder.py")


def test_when_everything_fails_at_once_the_log_is_spared():
    budget = LogBudget(20)

    assert sum(budget.may(100.0 + n / 1_000) for n in range(500)) == 20
    assert budget.may(101.0)
