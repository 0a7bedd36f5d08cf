"""A replica whose process is frozen: its workers go on with another one, and lose no job by it."""

import asyncio
import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from faultline.config import Settings
from faultline.remote.remote_backend import RemoteBackend
from faultline.remote.remote_heartbeat import RemoteHeartbeatSender
from faultline.remote.server_address import ServerAddress
from faultline.store import calls
from tests.remote.harness import Served
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


def both(first: Served, second: Served) -> RemoteBackend:
    return RemoteBackend(ServerAddress.read(f"{first.url},{second.url}", first.key), Settings())


@pytest.mark.parametrize("frozen", ["first", "second"])
def test_jobs_in_hand_are_kept_while_a_replica_is_frozen(store, served, spare, frozen):
    """The beats reach the other replica in time, and results do not wait for the frozen one to wake."""
    jobs = [enqueue(store, task="nap", max_attempts=1) for _ in range(4)]
    replicas = {"first": served, "second": spare}
    with harness.working(None, nap, noop, backend=both(served, spare), config=quick(lease_for=LEASE)):
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


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_in_twenty_tries_no_job_is_lost_to_a_frozen_replica(store, served, spare):
    """Frozen at any moment between two beats, whether it has the stream or not, at the usual lease."""
    usual = timedelta(seconds=15)
    lost = []

    async def work() -> None:
        await asyncio.sleep(usual.total_seconds() * 1.3)

    for number in range(20):
        jobs = [enqueue(store, task="work", max_attempts=1) for _ in range(4)]
        frozen = random.choice([served, spare])
        with harness.working(None, work, backend=both(served, spare), config=quick(lease_for=usual)):
            eventually(lambda: all(state_of(store, job) == "running" for job in jobs))  # noqa: B023
            time.sleep(random.uniform(0, usual.total_seconds() / 3))
            frozen.freeze()
            try:
                eventually(lambda: all(store.run(calls.get(job)).state.ended for job in jobs))  # noqa: B023
            finally:
                frozen.wake()
        if any(outcomes(store, job) != ["succeeded"] for job in jobs):
            lost.append(number)

    assert lost == []


def test_a_frozen_first_replica_does_not_keep_a_worker_from_starting(store, served, spare):
    job = enqueue(store, task="noop")
    served.freeze()
    try:
        assert harness.drain(None, noop, backend=both(served, spare), config=quick(lease_for=LEASE)) == 0
    finally:
        served.wake()

    assert outcomes(store, job) == ["succeeded"]


def test_a_beat_goes_on_to_the_next_replica_at_once(store, served, spare):
    """One call of the pacemaker suffices; before, the next replica was asked a sixth of a lease later."""
    address = ServerAddress.read(f"{served.url},{spare.url}", served.key)
    sender = RemoteHeartbeatSender(address, LEASE.total_seconds())
    served.freeze()
    try:
        sender.connect()
        assert sender.beat([], LEASE, None) == []
    finally:
        served.wake()
        sender.hang_up()


def _relay(listener: socket.socket, port: int, delay: float) -> None:
    """Carry bytes to the server and back, each connection after a while."""

    def carry(near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while came := near.recv(65_536):
                far.sendall(came)
        for one in (near, far):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    with contextlib.suppress(OSError):
        while True:
            near, _ = listener.accept()
            time.sleep(delay)
            far = socket.create_connection(("127.0.0.1", port))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=carry, args=pair, daemon=True).start()


def test_a_beat_waits_for_a_connection_over_a_slow_line(store, served, spare):
    """A handshake that takes 0.3 s, over a long line or with a busy machine, is no replica that is away."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(spare.url.rpartition(":")[2])
        threading.Thread(target=_relay, args=(listener, port, 0.3), daemon=True).start()
        slow = f"grpc://127.0.0.1:{listener.getsockname()[1]}"
        sender = RemoteHeartbeatSender(
            ServerAddress.read(f"{served.url},{slow}", served.key), LEASE.total_seconds()
        )
        served.freeze()
        try:
            sender.connect()
            assert sender.beat([], LEASE, None) == []
        finally:
            served.wake()
            sender.hang_up()


def test_a_silent_stream_is_left_for_the_next_replica(store, served, spare):
    """The worker holds no lease and asked nothing: the ping alone finds it out, within a third of a lease."""
    with harness.working(
        None, noop, backend=both(served, spare), config=quick(lease_for=timedelta(seconds=2))
    ):
        served.freeze()
        try:
            job = enqueue(store, task="noop")
            eventually(lambda: state_of(store, job) == "succeeded")
        finally:
            served.wake()

    assert outcomes(store, job) == ["succeeded"]
