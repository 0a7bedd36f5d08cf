"""Servers that go away: a worker keeps its jobs, looks for lost answers, and finds another replica."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from faultline.config import Settings
from faultline.errors import CannotConnect, ServerUnavailable
from faultline.remote.remote_backend import RemoteBackend
from faultline.remote.server_address import ServerAddress
from faultline.remote.worker_stream import WorkerStream
from faultline.store import calls
from tests.remote.harness import Served, working
from tests.support import enqueue, outcomes, state_of
from tests.worker import harness
from tests.worker.harness import eventually, quick


async def noop() -> None: ...


async def fail() -> None:
    raise ValueError("broken")


async def nap() -> None:
    await asyncio.sleep(1)


def lose_answers(monkeypatch: pytest.MonkeyPatch, kind: str) -> list[Any]:
    """Once, have the stream break after an answer of this kind was given, and before it is heard."""
    lost: list[Any] = []
    take = WorkerStream._take

    def hear(self: WorkerStream, message: Any) -> None:
        if message.WhichOneof("message") == kind and _matters(message) and not lost:
            lost.append(message)
            # A moment later: a server that could not deliver takes the jobs back by itself.
            asyncio.get_running_loop().call_later(0.2, self._stream.cancel)
        elif not lost or message is not lost[0]:
            take(self, message)

    monkeypatch.setattr(WorkerStream, "_take", hear)
    return lost


def _matters(message: Any) -> bool:
    return message.HasField("settled") or bool(message.assignments.jobs)


@pytest.mark.parametrize(("handler", "ends"), [(noop, ["succeeded"]), (fail, ["failed", "dead"])])
def test_a_result_whose_answer_was_lost_is_recorded_once_and_not_refused(
    store, served, monkeypatch, handler, ends
):
    lost = lose_answers(monkeypatch, "settled")
    job = enqueue(store, task=handler.__name__, max_attempts=len(ends))

    with working(served, handler):
        eventually(lambda: store.run(calls.get(job)).state.ended)

    assert len(lost) == 1
    assert outcomes(store, job) == ends
    assert store.run(calls.refusals(job)) == []


def test_a_claim_whose_answer_was_lost_strands_no_job(store, served, monkeypatch):
    """The same claim id is asked for again, and gives the same jobs."""
    lost = lose_answers(monkeypatch, "assignments")
    jobs = [enqueue(store, task="noop", max_attempts=1) for _ in range(3)]

    with working(served, noop, config=quick(lease_for=timedelta(minutes=5))):
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in jobs))

    assert len(lost) == 1
    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * 3


def test_a_server_that_dies_and_comes_back_is_waited_for(store, served, caplog):
    running = enqueue(store, task="nap", max_attempts=1)
    with working(served, noop, nap) as worker:
        eventually(lambda: state_of(store, running) == "running")
        served.kill()
        time.sleep(1.5)  # the handler has ended by now, and no server is there to hear of it
        after = enqueue(store, task="noop")
        served.start()
        eventually(lambda: state_of(store, running) == state_of(store, after) == "succeeded")
        assert worker.error is None

    assert outcomes(store, running) == ["succeeded"]
    assert any("the server is away" in record.getMessage() for record in caplog.records)
    assert worker.worker.id in [one.id for one in store.run(calls.list_workers(gone=True))]
    assert len({entry.worker for entry in store.run(calls.ledger())}) == 1, "it went on under its number"


def test_another_replica_takes_over(database, store, served):
    """`--server` may name several; whichever answers is spoken to."""
    spare = Served(database)
    try:
        backend = RemoteBackend(ServerAddress.read(f"{served.url},{spare.url}", served.key), Settings())
        with harness.working(None, noop, backend=backend):
            first = enqueue(store, task="noop")
            eventually(lambda: state_of(store, first) == "succeeded")
            served.kill()
            second = enqueue(store, task="noop")
            eventually(lambda: state_of(store, second) == "succeeded")
    finally:
        spare.close()


def test_a_server_that_is_told_to_stop_hands_its_workers_over(database, store, served, caplog):
    """It says so before it goes, so no worker meets an outage."""
    spare = Served(database)
    try:
        backend = RemoteBackend(ServerAddress.read(f"{served.url},{spare.url}", served.key), Settings())
        with harness.working(None, noop, nap, backend=backend):
            running = enqueue(store, task="nap", max_attempts=1)
            eventually(lambda: state_of(store, running) == "running")
            served.stop()
            after = enqueue(store, task="noop")
            eventually(lambda: state_of(store, running) == state_of(store, after) == "succeeded")
            served.wait_gone()
    finally:
        spare.close()

    assert outcomes(store, running) == ["succeeded"]
    assert not any("is away" in record.getMessage() for record in caplog.records)


def test_a_first_server_that_is_away_does_not_keep_a_worker_from_starting(store, served):
    backend = RemoteBackend(ServerAddress.read(f"grpc://127.0.0.1:1,{served.url}", served.key), Settings())
    job = enqueue(store, task="noop")

    assert harness.drain(None, noop, backend=backend) == 0

    assert outcomes(store, job) == ["succeeded"]


# what an error says of what was sent


async def asked(served: Served, kind: str) -> None:
    """Ask over a backend of our own, with the server gone before or after it was sent."""
    backend = served.backend()
    backend.open(quick())
    try:
        await backend.register("asker", None)
        session = backend._session._session
        assert session is not None
        if kind == "before":
            await asyncio.to_thread(served.kill)
            async with asyncio.timeout(30):
                while session.broken is None:  # noqa: ASYNC110 - the kernel makes it so
                    await asyncio.sleep(0.01)
        else:
            session._take = lambda message: session._stream.cancel()  # type: ignore[method-assign]
        await backend.heartbeat([])
    finally:
        await backend.close()


def test_what_could_not_be_sent_says_so(served):
    with pytest.raises(CannotConnect):
        asyncio.run(asked(served, "before"))


def test_what_was_sent_and_not_answered_says_so(served):
    with pytest.raises(ServerUnavailable):
        asyncio.run(asked(served, "after"))


def test_a_lease_is_counted_from_before_its_ask_was_sent(store, served, monkeypatch):
    """A.v: whatever the answer's way took, a worker never believes in a lease longer than it is."""
    slow: list[float] = []
    take = WorkerStream._take

    def hear(self: WorkerStream, message: Any) -> None:
        if message.HasField("assignments") and message.assignments.jobs and not slow:
            slow.append(time.monotonic())
            asyncio.get_running_loop().call_later(0.5, take, self, message)
        else:
            take(self, message)

    monkeypatch.setattr(WorkerStream, "_take", hear)
    enqueue(store, task="wait")

    async def wait() -> None:
        await asyncio.sleep(3600)

    with working(served, wait, config=quick(grace=timedelta(0))) as worker:
        (attempt,) = eventually(lambda: list(worker.worker._state.running))

    assert attempt.taken_at < slow[0]
