"""A worker over a server counts and traces what a worker on the database counts and traces."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from faultline import Faultline, Job
from faultline.metrics.event_counter import EventCounter
from faultline.retry import Constant
from faultline.store import calls
from tests.metrics import bad_day
from tests.metrics.conftest import text, value
from tests.metrics.test_tracing import Recorder, linked, span_id, spans
from tests.remote.harness import working
from tests.support import claim_one, enqueue, state_of
from tests.worker.harness import eventually, quick

__all__ = ["spans"]


@pytest.fixture
def counting() -> Iterator[EventCounter]:
    counting = EventCounter()
    stop = counting.start()
    yield counting
    stop()


def test_pickups_recoveries_and_zombies_are_measured(counting, database, store, served):
    lost = enqueue(store, task="fine", queue="lost")
    claim_one(store, queues=("lost",), lease=timedelta(milliseconds=500))  # by a worker that dies now
    bad_day.app.connect_to(database)
    bad_day.too_late.enqueue(database)
    eventually(lambda: state_of(store, lost) == "queued")  # the server's watchdog took it back

    config = quick(queues={"default": None, "lost": None})
    with working(served, bad_day.fine.spec, bad_day.too_late.spec, config=config):
        eventually(lambda: {"recovery_seconds", "zombie_seconds"} <= set(counting.figures.snapshot()))
    bad_day.app.close()

    told = text(counting)
    for name in ("recovery_seconds_count", "zombie_seconds_count", "leases_taken_over_total"):
        assert value(told, f"faultline_{name}") == 1, name
    assert value(told, "faultline_job_pickup_seconds_count", queue="lost") == 1
    assert value(told, "faultline_job_pickup_seconds_sum", queue="lost") > 0
    assert value(told, "faultline_stale_writes_refused_total", queue="default", reason="token_mismatch") == 1


def test_a_claim_is_part_of_its_jobs_trace(spans: Recorder, database, store, served):
    app = Faultline(database)

    @app.task(max_attempts=3, retry=Constant(timedelta(0)))
    async def flaky(job: Job) -> None:
        if job.attempt == 1:
            raise ValueError("once more")

    job = flaky.enqueue().id
    with working(served, flaky.spec):
        eventually(lambda: store.run(calls.get(job)).state == "succeeded")
        eventually(lambda: len(spans.named("process default")) == 2)
    app.close()

    claims = [span_id(span) for span in spans.named("receive default")]
    first, second = spans.named("process default")
    assert [span.parent and span.parent.span_id for span in (first, second)] == claims
    assert claims[0] in linked(second)
    assert span_id(spans.one("send default")) in linked(first) & linked(second)
