"""A replica whose process is frozen: its workers go on with another one, and lose no job by it."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from faultline.config import Settings
from faultline.remote.address import Address
from faultline.remote.doors import Remote
from faultline.remote.pacemaker import RemoteMouth
from faultline.store import calls
from tests.remote_worker.harness import Served
from tests.support import enqueue, outcomes, state_of
from tests.worker import harness
from tests.worker.harness import eventually, quick

LEASE = timedelta(seconds=6)


async def nap() -> None:
    await asyncio.sleep(LEASE.total_seconds() * 2)


async def noop() -> None: ...


@pytest.fixture
def spare(database: str) -> Iterator[Served]:
    """A second replica before the same database."""
    spare = Served(database)
    yield spare
    spare.close()


def both(first: Served, second: Served) -> Remote:
    return Remote(Address.read(f"{first.url},{second.url}", first.key), Settings())


@pytest.mark.parametrize("frozen", ["first", "second"])
def test_jobs_in_hand_are_kept_while_a_replica_is_frozen(store, served, spare, frozen):
    """The beats reach the other replica in time, and results do not wait for the frozen one to wake."""
    jobs = [enqueue(store, task="nap", max_attempts=1) for _ in range(4)]
    replicas = {"first": served, "second": spare}
    with harness.working(None, nap, noop, doors=both(served, spare), config=quick(lease_for=LEASE)):
        eventually(lambda: all(state_of(store, job) == "running" for job in jobs))
        replicas[frozen].freeze()
        try:
            eventually(lambda: all(store.run(calls.get(job)).state.ended for job in jobs))
            after = enqueue(store, task="noop")
            eventually(lambda: state_of(store, after) == "succeeded")
        finally:
            replicas[frozen].wake()

    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * len(jobs)
    assert store.run(calls.refusals()) == []


def test_a_frozen_first_replica_does_not_keep_a_worker_from_starting(store, served, spare):
    job = enqueue(store, task="noop")
    served.freeze()
    try:
        assert harness.drain(None, noop, doors=both(served, spare), config=quick(lease_for=LEASE)) == 0
    finally:
        served.wake()

    assert outcomes(store, job) == ["succeeded"]


def test_a_beat_goes_on_to_the_next_replica_at_once(store, served, spare):
    """One call of the pacemaker suffices; before, the next replica was asked a sixth of a lease later."""
    address = Address.read(f"{served.url},{spare.url}", served.key)
    mouth = RemoteMouth(address, LEASE.total_seconds())
    served.freeze()
    try:
        mouth.connect()
        assert mouth.beat([], LEASE, None) == []
    finally:
        served.wake()
        mouth.hang_up()


def test_a_silent_stream_is_left_for_the_next_replica(store, served, spare):
    """Nothing is in hand and nothing was asked: the ping alone finds it out, within a third of a lease."""
    with harness.working(None, noop, doors=both(served, spare), config=quick(lease_for=timedelta(seconds=2))):
        served.freeze()
        try:
            job = enqueue(store, task="noop")
            eventually(lambda: state_of(store, job) == "succeeded")
        finally:
            served.wake()

    assert outcomes(store, job) == ["succeeded"]
