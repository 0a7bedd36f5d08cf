"""I11: escape sequences, marks that reorder text, newlines: refused in names, spelled out where shown."""

import io
import logging

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from faultline.telemetry import JsonFormatter, LineFormatter, configure_logging, emit, printable
from tests.bad_input.entry_points import words
from tests.support import NOW, claim_one, enqueue

HOSTILE = {
    "an escape sequence": "\x1b[2J\x1b]0;owned\x07",
    "a newline": "first\nERROR second",
    "a carriage return": "secret\rharmless",
    "a control of the upper half": "a\x9b31mb",
    "a delete": "a\x7fb",
}
REORDERING = {
    "right to left": "\u202etxt.exe",
    "an isolate": "a\u2066b\u2069",
    "a line separator": "a\u2028b",
    "nothing visible": "a\u200bb",
}


@pytest.mark.parametrize("field", ["task", "queue"])
@pytest.mark.parametrize("case", [*HOSTILE, *REORDERING])
def test_i11_names_of_tasks_and_queues_are_refused_and_not_echoed_raw(entries, nothing_changes, field, case):
    text = {**HOSTILE, **REORDERING}[case]

    with nothing_changes():
        told = entries.refusals(**{field: text})

    assert type(told["store"]) is errors.BadName
    assert type(told["sql"]) is psycopg.errors.CheckViolation
    assert type(told["python"]) is errors.BadName
    for refusal in told.values():
        assert printable(words(refusal)) == words(refusal)


@pytest.mark.parametrize("case", HOSTILE)
def test_i11_a_key_has_no_control_characters_whatever_the_locale(entries, nothing_changes, case):
    with nothing_changes():
        told = entries.refusals(key=HOSTILE[case])

    assert type(told["store"]) is errors.BadName
    assert "a key has no control characters" in str(told["store"])
    assert "a_key_has_no_control_characters" in words(told["sql"])
    assert type(told["python"]) is errors.BadName
    assert "no control characters" in str(told["python"])
    assert all(printable(words(refusal)) == words(refusal) for refusal in told.values())


@pytest.mark.parametrize("case", [*HOSTILE, *REORDERING])
def test_i11_the_error_of_an_attempt_is_kept_as_it_was(store, case):
    """The ledger tells what happened; a program that shows it makes it safe to look at."""
    text = {**HOSTILE, **REORDERING}[case]
    job = enqueue(store)
    store.run(calls.fail(claim_one(store), text, NOW))

    (entry,) = store.run(calls.history(job))

    assert entry.error == text


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "line"])
@pytest.mark.parametrize("case", [*HOSTILE, *REORDERING])
def test_i11_a_log_line_stays_one_line_and_shows_no_raw_control(case, as_json):
    text = {**HOSTILE, **REORDERING}[case]
    stream = io.StringIO()
    handler = configure_logging(stream, json=as_json, level=logging.DEBUG)
    try:
        emit("execution_finished", job_id=7, token=1, worker=text, error=text)
        logging.getLogger("shop").error("handler said %s", text)
    finally:
        logging.getLogger().removeHandler(handler)

    lines = stream.getvalue().split("\n")
    assert len(lines) == 3
    assert all(printable(line) == line for line in lines)
    assert isinstance(handler.formatter, JsonFormatter if as_json else LineFormatter)
