"""A worker on the database hears of a cancelled job as it is cancelled, and asks a beat whether it is so."""

import asyncio
import threading
from datetime import timedelta

from faultline import Faultline
from faultline.store import calls
from tests.support import enqueue, outcomes
from tests.worker.harness import PATIENCE, eventually, quick, working


class Nap:
    """A handler that sleeps until it is stopped."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    async def nap(self) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            self.stopped.set()


def test_a_cancelled_jobs_handler_is_stopped_long_before_the_next_beat(database, store):
    sleeper = Nap()
    job = enqueue(store, task="nap")
    app = Faultline(database)
    with working(database, sleeper.nap, config=quick(lease_for=timedelta(minutes=30))) as worker:
        eventually(lambda: worker.worker._state.listening and list(worker.worker._state.running))
        app.cancel(job)
        assert sleeper.stopped.wait(PATIENCE)
    app.close()

    assert outcomes(store, job) == ["cancelled"]


def test_news_of_a_job_that_was_not_cancelled_stops_no_handler(database, store):
    """The beat has the last word: after it the job still runs, and its lease is still ours."""
    sleeper, other = Nap(), Nap()

    async def nap_too() -> None:
        await other.nap()

    job = enqueue(store, task="nap")
    cancelled = enqueue(store, task="nap_too")
    with working(database, sleeper.nap, nap_too, config=quick(lease_for=timedelta(minutes=30))) as worker:
        eventually(lambda: worker.worker._state.listening and len(worker.worker._state.running) == 2)
        store.run(calls.cancel(cancelled), calls.wake_cancelled([job, cancelled]))
        assert other.stopped.wait(PATIENCE)  # so the other was asked about as well
        assert not sleeper.stopped.is_set()
        store.run(calls.cancel(job), calls.wake_cancelled([job]))
        assert sleeper.stopped.wait(PATIENCE)
