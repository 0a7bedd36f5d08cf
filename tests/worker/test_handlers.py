"""What a handler sees: its job, its context, and log records that carry its name."""

import asyncio
import contextvars
import logging
import threading
import time
from datetime import timedelta
from types import SimpleNamespace

from faultline.config import WorkerConfig
from faultline.job import Job
from faultline.store import calls
from faultline.telemetry import current
from faultline.worker.attempt import StopReason
from faultline.worker.execution.executor import Executor
from faultline.worker.state import WorkerState
from tests.support import enqueue, new_job, outcomes
from tests.worker.harness import an_attempt, drain, effect_key, eventually, quick, working

log = logging.getLogger("shop")
tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="none")


def test_a_handler_may_take_the_job_first_or_not_at_all(database, store):
    seen: dict[str, object] = {}

    async def with_job(job: Job, number: int) -> None:
        seen["with_job"] = (job.id, job.task, job.attempt, job.max_attempts, job.queue, number, job.lost)

    async def without(number: int) -> None:
        seen["without"] = number

    def in_thread(job: Job) -> None:
        seen["in_thread"] = (job.id, threading.current_thread() is not threading.main_thread())

    first = enqueue(store, task="with_job", args='{"number": 1}', max_attempts=7)
    enqueue(store, task="without", args='{"number": 2}')
    third = enqueue(store, task="in_thread")

    drain(database, with_job, without, in_thread)

    assert seen == {
        "with_job": (first, "with_job", 1, 7, "default", 1, False),
        "without": 2,
        "in_thread": (third, True),
    }


def test_an_idempotency_key_stays_and_a_token_grows_from_attempt_to_attempt(database, store):
    seen = []

    async def charge(job: Job) -> None:
        seen.append((job.attempt, job.idempotency_key("intent"), job.token))
        if job.attempt == 1:
            raise OSError

    job = enqueue(store, task="charge", retry='{"kind":"constant","wait":0}')
    effect = effect_key(database, job, "intent")

    with working(database, charge):
        eventually(lambda: store.run(calls.get(job)).state == "succeeded")

    (first, key, token), (second, same_key, higher) = seen
    assert (first, second) == (1, 2)
    assert key == same_key == effect
    assert higher > token


def test_records_made_inside_a_handler_carry_its_job(database, store, caplog):
    caplog.set_level(logging.INFO)

    async def deeper() -> None:
        log.info("in a task of its own")

    async def tells(job: Job) -> None:
        log.info("in the loop")
        await asyncio.sleep(0.01)
        log.info("after a wait")
        await asyncio.create_task(deeper())

    def tells_in_thread(job: Job) -> None:
        log.info("in a thread")

    first, second = enqueue(store, task="tells"), enqueue(store, task="tells_in_thread")

    drain(database, tells, tells_in_thread)

    told = {record.message: record for record in caplog.records if record.name == "shop"}
    assert set(told) == {"in the loop", "after a wait", "in a task of its own", "in a thread"}
    for message, record in told.items():
        job, task = (second, "tells_in_thread") if message == "in a thread" else (first, "tells")
        assert (record.job_id, record.task) == (job, task)
        assert record.token > 0
    log.info("outside")
    assert getattr(caplog.records[-1], "job_id", None) is None


def test_what_a_handler_sets_in_its_context_the_next_one_does_not_see(database, store):
    seen = []

    async def sets(job: Job) -> None:
        seen.append((tenant.get(), current.get() is job))
        tenant.set(f"tenant of {job.id}")
        await asyncio.sleep(0)
        assert tenant.get() == f"tenant of {job.id}"

    def sets_in_thread(job: Job) -> None:
        seen.append((tenant.get(), current.get() is job))
        tenant.set(f"tenant of {job.id}")

    store.run(calls.enqueue_many([new_job(task="sets")] * 4))
    store.run(calls.enqueue_many([new_job(task="sets_in_thread")] * 4))

    drain(database, sets, sets_in_thread, config=quick(jobs_max=1))

    assert seen == [("none", True)] * 8


def test_threads_run_beside_each_other_and_beside_the_loop(database, store):
    meeting = threading.Barrier(3, timeout=20)

    def waits_in_thread() -> None:
        meeting.wait()

    async def waits() -> None:
        await asyncio.to_thread(meeting.wait)

    jobs = [enqueue(store, task=task) for task in ("waits_in_thread", "waits_in_thread", "waits")]

    drain(database, waits_in_thread, waits)

    assert {store.run(calls.get(job)).state for job in jobs} == {"succeeded"}


def test_a_handler_that_ate_its_cancellation_leaves_nothing_to_the_next(database, store):
    """The runner is shared: a cancellation that one handler swallowed must not reach its successor."""

    async def eats(job: Job) -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "swallowed"
        return "slept"

    async def groups() -> str:
        async def fails() -> None:
            raise ValueError("one of the group")

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                group.create_task(asyncio.sleep(30))
        except ExceptionGroup:
            return "told"
        return "untold"

    async def cancels_its_own() -> None:
        task = asyncio.create_task(asyncio.sleep(30))
        await asyncio.sleep(0)
        task.cancel()
        await task

    first = enqueue(store, task="eats", timeout=timedelta(seconds=0.3))
    second = enqueue(store, task="cancels_its_own")
    third = enqueue(store, task="groups")

    with working(database, eats, groups, cancels_its_own, config=quick(jobs_max=1)):
        eventually(lambda: store.run(calls.get(third)).state == "succeeded")

    assert store.run(calls.get(third)).result == "told"
    assert outcomes(store, second) == ["failed"]
    assert outcomes(store, first)[0] in ("succeeded", "failed", "expired")  # as fast as the machine is


def test_a_handler_that_never_waits_does_not_keep_the_others_from_being_recorded(database, store):
    """Outcomes are recorded while a row of jobs that never wait still runs."""

    async def busy() -> None:
        end = time.perf_counter() + 0.05
        while time.perf_counter() < end:
            pass

    ids = store.run(calls.enqueue_many([new_job(task="busy")] * 24))

    with working(database, busy, config=quick(jobs_max=2)):
        eventually(lambda: store.run(calls.get(ids[0])).state == "succeeded")
        assert store.run(calls.get(ids[-1])).state != "succeeded"
        eventually(lambda: store.run(calls.get(ids[-1])).state == "succeeded")


def test_a_job_told_to_stop_before_it_began_is_settled_in_no_other_jobs_name():
    """The runner has just ended another: what is logged now, also by a retry policy, is not that one's."""
    named: list[Job | None] = []
    settler = SimpleNamespace(take=lambda attempt, outcome: named.append(current.get()))
    state = WorkerState(WorkerConfig())

    async def go_on() -> None:
        executor = Executor(state, settler, 1, None, None, None)  # type: ignore[arg-type]
        current.set(an_attempt(state.lease_table, 1).job)
        stopped, following = an_attempt(state.lease_table, 2), an_attempt(state.lease_table, 3)
        stopped.stopping = StopReason.LEAVING
        state.buffer.extend((stopped, following))
        assert await executor._next() is following

    asyncio.run(go_on())
    state.lease_table.close()
    assert named == [None]


def test_a_job_knows_its_attempt_only_while_its_handler_runs(database, store):
    """Kept for longer, each would keep the other in memory for good."""
    seen = []

    async def look(job: Job) -> None:
        seen.append((job, job._attempt.job is job))

    enqueue(store, task="look")

    drain(database, look)

    ((job, knew),) = seen
    assert knew
    assert job._attempt is None
