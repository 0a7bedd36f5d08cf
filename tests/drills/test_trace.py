"""The trace holds what was said and seen, and waiting for a sign has a bound."""

import json
import threading

import pytest

from faultline.lab.drills.view.trace import DrillStuck, Trace, TraceSign, read


def test_a_line_of_json_becomes_a_sign_with_its_facts():
    line = {
        "at": "2026-01-01T00:00:00.500+00:00",
        "level": "debug",
        "logger": "x",
        "event": "lease_acquired",
        "token": 3,
    }

    sign = read("A", json.dumps(line))

    assert (sign.who, sign.what, sign.facts, sign.level, sign.is_event) == (
        "A",
        "lease_acquired",
        {"token": 3},
        "debug",
        True,
    )


@pytest.mark.parametrize(
    "line", ["Traceback (most recent call last):\n", "[1, 2]\n", '{"event": "no moment"}\n', "\n"]
)
def test_whatever_else_a_process_says_is_kept_as_it_was_said(line):
    sign = read("A", line)

    assert (sign.what, sign.level, sign.is_event) == (line.rstrip(), "error", False)


def test_a_sign_can_be_written_and_read_again():
    sign = TraceSign("A", "frozen", {"job_id": 7})

    assert read("A", sign.json) == sign


def test_a_sign_that_came_before_the_wait_is_found():
    trace = Trace()
    trace.tell(TraceSign("A", "frozen"))

    assert trace.wait_for_event("A", "frozen", within_seconds=0).what == "frozen"


def test_who_waits_is_woken_by_the_sign():
    trace = Trace()
    threading.Timer(0.05, trace.tell, [TraceSign("B", "committed")]).start()

    assert trace.wait_for_event("B", "committed", within_seconds=10).who == "B"


def test_a_sign_that_does_not_come_is_named():
    with pytest.raises(DrillStuck, match="did not happen: frozen of A"):
        Trace().wait_for_event("A", "frozen", within_seconds=0.01)


def test_a_worker_that_ends_in_an_accident_ends_the_waiting_at_once():
    trace = Trace()
    trace.tell(read("A", "ImportError: no such module"))
    trace.tell(TraceSign("A", "exited", {"code": 1}))

    with pytest.raises(DrillStuck, match=r"worker A ended with code 1 .ImportError: no such module."):
        trace.wait_for_event("A", "frozen", within_seconds=60)
