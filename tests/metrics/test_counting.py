"""A worker's figures: what it did in a bad day, as its endpoint tells it."""

import contextlib

from faultline.metrics.event_counter import EventCounter
from faultline.telemetry import emit, listen
from faultline.telemetry.events import has_listeners, record_metric
from tests.metrics.conftest import Scrapes, samples, text, value
from tests.support import enqueue, state_of
from tests.worker.harness import drain

EXPECTED: list[tuple[str, dict[str, str], float]] = [
    ("jobs_settled_total", {"queue": "default", "task": "fine", "outcome": "succeeded"}, 20),
    ("jobs_settled_total", {"queue": "lost", "task": "fine", "outcome": "succeeded"}, 1),
    ("jobs_settled_total", {"queue": "default", "task": "flaky", "outcome": "failed"}, 1),
    ("jobs_settled_total", {"queue": "default", "task": "flaky", "outcome": "succeeded"}, 1),
    ("jobs_settled_total", {"queue": "default", "task": "doomed", "outcome": "dead"}, 1),
    ("jobs_settled_total", {"queue": "default", "task": "dies", "outcome": "crashed"}, 1),
    ("jobs_settled_total", {"queue": "default", "task": "too_late", "outcome": "refused"}, 1),
    ("job_duration_seconds_count", {"queue": "default", "task": "fine"}, 20),
    ("retries_total", {"queue": "default", "task": "flaky"}, 1),
    ("retries_total", {"queue": "lost", "task": "fine"}, 1),
    ("crashes_total", {"task": "dies", "signature": "SIGKILL"}, 1),
    ("stale_writes_refused_total", {"queue": "default", "reason": "token_mismatch"}, 1),
    ("zombie_seconds_count", {}, 1),
    ("leases_expired_total", {"queue": "lost"}, 1),
    ("leases_taken_over_total", {}, 1),
    ("recovery_seconds_count", {}, 1),
    ("leases_acquired_total", {"queue": "lost"}, 1),
    ("worker_slots", {"state": "stuck"}, 0),
    ("worker_slots", {"state": "idle"}, 8),
    ("worker_outage_seconds", {}, 0),
    ("processes", {}, 1),
    ("watchdog_leads", {}, 1),
    ("commits_resolved_total", {"answer": "running"}, 0),
]


def test_a_bad_day_is_counted(bad_day: Scrapes):
    told = [
        (name, labels, value(bad_day.worker, f"faultline_{name}", **labels)) for name, labels, _ in EXPECTED
    ]

    assert told == EXPECTED


def test_pickup_is_measured_for_every_claim(bad_day: Scrapes):
    acquired = value(bad_day.worker, "faultline_leases_acquired_total", queue="default")
    assert value(bad_day.worker, "faultline_job_pickup_seconds_count", queue="default") == acquired


def test_what_is_true_of_the_database_is_told_by_the_server_alone(bad_day: Scrapes):
    """Told by each worker, a queue would be counted once for each of them."""
    assert not any(name.startswith("faultline_queue_") for name, _ in samples(bad_day.worker))
    assert value(bad_day.server, "faultline_queue_jobs", queue="default", state="dead") == 1


def test_s10_no_text_of_an_error_is_in_any_label(bad_day: Scrapes):
    assert "hunter2" not in bad_day.worker + bad_day.server
    assert "password" not in bad_day.worker + bad_day.server


def test_a_counter_that_fails_fails_alone(database, store):
    """M4: code that counts the work cannot stop it."""

    def broken(name: str, facts: object) -> None:
        raise RuntimeError("no room for figures")

    job = enqueue(store, task="nothing")
    stop = listen(broken)
    try:
        with contextlib.suppress(RuntimeError):
            drain(database, nothing)
    finally:
        stop()

    assert state_of(store, job) == "succeeded"


async def nothing() -> None:
    """Nothing to do."""


def test_without_a_listener_nothing_is_gathered(database, store):
    enqueue(store, task="nothing")
    assert not has_listeners()

    assert drain(database, nothing) == 0


def test_events_told_before_it_started_are_not_counted(counting: EventCounter):
    later = EventCounter()
    emit("stale_write_blocked", queue="default", reason="gone")

    assert value(text(counting), "faultline_stale_writes_refused_total", queue="default", reason="gone") == 1
    assert value(text(later), "faultline_stale_writes_refused_total", queue="default", reason="gone") is None


def test_an_event_of_another_release_is_nothing_to_it(counting: EventCounter):
    record_metric("from_the_future", whatever=1)

    assert "future" not in text(counting)
