"""Leases that end while a handler runs: it is stopped, nothing of it commits, no other job is affected."""

import asyncio
import contextlib
import itertools
import threading
import time
from datetime import timedelta

import pytest

from faultline.errors import LeaseLost
from faultline.job import Job
from faultline.retry import Constant
from faultline.store import calls
from faultline.task import spec_of
from faultline.worker.execution.deadlines import TOLD_AFTER
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import attempt_of, drain, eventually, execute, quick, rows, short, working
from tests.worker.test_transaction import effects, steal


def test_a_cancelled_job_stops_at_the_next_beat_and_commits_nothing(database, store):
    """C9: whatever the handler does after the acknowledged cancel, no row of it appears."""
    ended = threading.Event()

    async def work(job: Job) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            assert job.lost
            ended.set()
            async with job.complete() as conn:  # it tries, all the same
                await conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])

    job = enqueue(store, task="work")

    with working(database, work, config=quick()):
        eventually(lambda: state_of(store, job) == "running")
        store.run(calls.cancel(job, "no longer wanted"))
        assert ended.wait(30)

    assert state_of(store, job) == "cancelled"
    assert effects(database) == []
    assert outcomes(store, job) == ["cancelled"]


def test_a_cancelled_job_in_a_thread_finds_itself_lost(database, store):
    seen: list[object] = []

    def work(job: Job) -> None:
        seen.append("begun")
        seen.append(job.wait_lost(30))
        with pytest.raises(LeaseLost), job.complete():
            pass
        seen.append("refused")

    job = enqueue(store, task="work")

    with working(database, work, config=quick()) as worker:
        eventually(lambda: seen)
        attempt = attempt_of(worker, job)
        store.run(calls.cancel(job))
        eventually(lambda: len(seen) == 3)

    assert seen == ["begun", True, "refused"]
    assert attempt.stopping == "cancel"  # it was told, and did not just see its lease run out
    assert outcomes(store, job) == ["cancelled"]


def test_a_taken_job_is_stopped_and_says_nothing_more(database, store):
    ended = threading.Event()

    async def work(job: Job) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    job = enqueue(store, task="work")

    with working(database, work, config=quick(), watchdog=False):
        eventually(lambda: state_of(store, job) == "running")
        steal(database, job)
        execute(database, "update faultline.active set lease_until = faultline.now() + interval '1 hour'")
        assert ended.wait(30)

    assert state_of(store, job) == "running"
    assert outcomes(store, job) == ["expired"]  # what the takeover wrote, and no more
    assert store.run(calls.refusals(job)) == []


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_a_worker_that_claims_what_it_still_works_on_never_runs_two_attempts_at_once(database, store, kind):
    """A.vi, the self-zombie: same worker, same job, an old and a new lease, told apart by token and claim."""
    running: list[int] = []
    most: list[int] = []
    go_on = threading.Event()

    def enter(job: Job) -> None:
        running.append(job.attempt)
        most.append(len(running))

    async def work(job: Job) -> int:
        enter(job)
        while job.attempt == 1 and not go_on.is_set():
            with contextlib.suppress(asyncio.CancelledError):  # it will not stop when it is told to
                await asyncio.sleep(0.05)
        running.remove(job.attempt)
        return job.attempt

    def work_in_thread(job: Job) -> int:
        enter(job)
        if job.attempt == 1:
            go_on.wait(60)
        running.remove(job.attempt)
        return job.attempt

    handler = work if kind == "async" else work_in_thread
    handler.__name__ = "work"
    job = enqueue(store, task="work")

    with working(database, handler):
        eventually(lambda: running)
        execute(
            database,
            "update faultline.active set lease_until = faultline.now() - interval '1 second';"
            "select faultline.reap()",
        )
        eventually(lambda: "snoozed" in outcomes(store, job))  # it was claimed again, and put off
        go_on.set()
        eventually(lambda: state_of(store, job) == "succeeded")

    assert most == [1, 1]
    assert store.run(calls.get(job)).result == 2
    assert outcomes(store, job)[0] == "expired"
    assert outcomes(store, job)[-1] == "succeeded"
    assert set(outcomes(store, job)[1:-1]) == {"snoozed"}


def test_p7_a_handler_that_never_returns_is_ended_at_its_timeout_and_counted(database, store):
    async def endless(job: Job) -> None:
        await asyncio.Event().wait()

    async def quickly() -> None: ...

    first = enqueue(store, task="endless", timeout=timedelta(seconds=0.7), max_attempts=3)
    second = enqueue(store, task="quickly")

    with working(database, endless, quickly, config=quick(jobs_max=1)):
        eventually(lambda: state_of(store, second) == "succeeded")

    assert outcomes(store, first) == ["failed"]
    info = store.run(calls.get(first))
    assert (info.state, info.attempt, info.crashes) == ("queued", 1, 0)
    assert info.error.startswith("TimeoutError: endless ran into its timeout")


def test_a_timeout_may_come_from_the_task_or_the_worker(database, store):
    async def of_task() -> None:
        await asyncio.sleep(60)

    async def of_worker() -> None:
        await asyncio.sleep(60)

    first, second = enqueue(store, task="of_task"), enqueue(store, task="of_worker")

    with working(
        database,
        spec_of(of_task, timeout=timedelta(seconds=0.3)),
        of_worker,
        config=quick(timeout=timedelta(seconds=0.6)),
    ):
        eventually(lambda: outcomes(store, first) and outcomes(store, second))

    assert outcomes(store, first) == outcomes(store, second) == ["failed"]


def test_p8_a_thread_that_ignores_its_timeout_costs_a_slot_until_it_returns(database, store, caplog):
    go_on = threading.Event()
    at_once = [0]

    def deaf(job: Job) -> None:
        go_on.wait(60)

    async def works() -> None:
        at_once.append(at_once[-1] + 1)
        await asyncio.sleep(0.02)
        at_once.append(at_once[-1] - 1)

    deaf_job = enqueue(store, task="deaf", timeout=timedelta(seconds=0.3), max_attempts=1)

    with working(database, deaf, works, config=quick(jobs_max=2)) as worker:
        eventually(lambda: state_of(store, deaf_job) == "dead")
        state = worker.worker._state
        assert [attempt.job.id for attempt in state.abandoned] == [deaf_job]
        others = store.run(calls.enqueue_many([new_job(task="works")] * 10))
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in others))
        assert max(at_once) == 1
        eventually(lambda: goes_on(caplog))
        go_on.set()
        eventually(lambda: not state.abandoned)

    (line,) = goes_on(caplog)
    assert "goes on after its lease ended (timeout)" in line


def goes_on(caplog) -> list[str]:
    """The lines about threads that outlive their lease."""
    return [line for line in caplog.messages if line.startswith("the thread of job")]


def test_p8_a_coroutine_that_swallows_its_cancellation_fails_by_its_timeout(database, store, caplog):
    """As a thread does: one failed attempt, a slot until it returns, a warning, and no crash."""
    began, go_on = threading.Event(), threading.Event()

    async def deaf() -> None:
        began.set()
        while not go_on.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)

    async def works() -> None:
        await asyncio.sleep(0)

    job = enqueue(store, task="deaf", max_attempts=1)

    with working(database, deaf, works, config=quick(jobs_max=2)) as worker:
        eventually(began.is_set)
        attempt_of(worker, job).timeout_at = 0.0  # the database's own deadline is far away
        eventually(lambda: state_of(store, job) == "dead")
        state = worker.worker._state
        assert [attempt.job.id for attempt in state.given_up] == [job]
        other = enqueue(store, task="works")
        eventually(lambda: state_of(store, other) == "succeeded")
        eventually(lambda: any(line.startswith("the handler of job") for line in caplog.messages))
        go_on.set()
        eventually(lambda: not state.given_up and not state.running)

    assert outcomes(store, job) == ["dead"]
    assert store.run(calls.get(job)).crashes == 0
    (line,) = [line for line in caplog.messages if line.startswith("the handler of job")]
    assert "goes on after its lease ended (timeout)" in line


def test_p8_while_an_earlier_attempt_goes_on_the_next_comes_ever_later(database, store):
    began, go_on = threading.Event(), threading.Event()

    async def deaf() -> None:
        began.set()
        while not go_on.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)

    job = enqueue(store, task="deaf")

    with working(database, spec_of(deaf, retry=Constant(timedelta(seconds=0.1))), config=quick()) as worker:
        eventually(began.is_set)
        attempt_of(worker, job).timeout_at = 0.0
        eventually(lambda: outcomes(store, job).count("snoozed") >= 2)
        go_on.set()
        history = store.run(calls.history(job))

    waits = [later.claimed_at - before.settled_at for before, later in itertools.pairwise(history[1:])]
    assert outcomes(store, job)[0] == "failed"
    assert waits == sorted(waits)


def test_p8_a_thread_that_returns_when_it_is_told_to_is_no_warning(database, store, caplog):
    returned = threading.Event()

    def heeds(job: Job) -> None:
        job.wait_lost(60)
        time.sleep(0.2)
        returned.set()

    job = enqueue(store, task="heeds", timeout=timedelta(seconds=0.3), max_attempts=1)

    with working(database, heeds, config=quick()) as worker:
        eventually(lambda: state_of(store, job) == "dead")
        assert returned.wait(30)
        eventually(lambda: not worker.worker._state.abandoned)
        time.sleep(TOLD_AFTER + 0.2)

    assert goes_on(caplog) == []


def test_p8_a_thread_that_goes_on_as_its_worker_leaves_is_told_before_that(database, store, caplog):
    """Nothing is left to a moment that the loop does not live to see."""
    began, go_on = threading.Event(), threading.Event()

    def deaf() -> None:
        began.set()
        go_on.wait(60)

    enqueue(store, task="deaf")

    with working(database, deaf, config=quick(grace=timedelta(0))) as worker:
        assert began.wait(30)
        worker.stop()
        assert worker.join() == 0
        (line,) = goes_on(caplog)
        go_on.set()

    assert "goes on after its lease ended (leaving)" in line


def test_p8_a_worker_whose_threads_are_all_lost_ends_with_code_3(database, store):
    go_on = threading.Event()

    def deaf() -> None:
        go_on.wait(60)

    jobs = [enqueue(store, task="deaf", timeout=timedelta(seconds=0.3), max_attempts=1) for _ in range(2)]

    with working(database, deaf, config=short(jobs_max=2)) as worker:
        assert worker.join() == 3
        go_on.set()

    assert [state_of(store, job) for job in jobs] == ["dead"] * 2


def test_p8_handlers_that_need_a_moment_to_return_do_not_cost_their_worker(database, store):
    """Every thread was told to stop at once: held by a handler that is about to return is not lost."""

    def tidies(job: Job) -> None:
        job.wait_lost(60)
        time.sleep(1)

    def works() -> None: ...

    jobs = [enqueue(store, task="tidies", timeout=timedelta(seconds=0.3), max_attempts=1) for _ in range(2)]

    with working(database, tidies, works, config=quick(jobs_max=2)) as worker:
        eventually(lambda: [state_of(store, job) for job in jobs] == ["dead"] * 2)
        later = enqueue(store, task="works")
        eventually(lambda: state_of(store, later) == "succeeded")
        worker.stop()
        assert worker.join() == 0


def test_a_handler_whose_lease_cannot_be_renewed_is_stopped_before_it_ends(database, store, proxy):
    """N4: the database is out of reach for worker and pacemaker; the handler goes before the lease does."""
    ended_at: list[float] = []
    began = threading.Event()

    async def work(job: Job) -> None:
        if job.attempt > 1 or ended_at:
            return
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended_at.append(time.monotonic())

    job = enqueue(store, task="work")

    with working(proxy.dsn, work, config=short(lease_for=timedelta(seconds=4)), watchdog=False):
        assert began.wait(30)
        proxy.close_way()
        eventually(lambda: ended_at)
        ((left,),) = rows(
            database, "select extract(epoch from lease_until - faultline.now())::float8 from faultline.active"
        )
        assert ended_at[0] < time.monotonic() + left  # the moment at which the lease ends, by our clock
        proxy.open_way()
        eventually(lambda: state_of(store, job) == "succeeded")

    assert outcomes(store, job) == ["released", "succeeded"]
    assert store.run(calls.get(job)).attempt == 1


def test_a_network_that_swallows_costs_the_handler_but_not_the_attempt(database, store, proxy):
    began, ended = threading.Event(), threading.Event()

    def work(job: Job) -> None:
        if ended.is_set():
            return
        began.set()
        job.wait_lost(60)
        ended.set()

    job = enqueue(store, task="work")

    with working(proxy.dsn, work, config=short(), watchdog=False):
        assert began.wait(30)
        proxy.hold()
        assert ended.wait(30)
        assert state_of(store, job) == "running"
        proxy.flow()
        eventually(lambda: state_of(store, job) == "succeeded")

    assert set(outcomes(store, job)) <= {"released", "succeeded"}
    assert store.run(calls.get(job)).attempt == 1


def test_a_refused_success_is_told_with_both_tokens(database, store):
    async def work(job: Job) -> str:
        await asyncio.to_thread(steal, database, job.id)
        return "late"

    job = enqueue(store, task="work")

    drain(database, work)

    (refusal,) = store.run(calls.refusals(job))
    assert (refusal.reason, refusal.token, refusal.current_token) == ("token_mismatch", 1, 2)
    assert refusal.worker is not None
    assert state_of(store, job) == "running"


def test_a_zombie_that_is_not_replaced_yet_is_refused_as_settled(database, store):
    async def work(job: Job) -> str:
        await asyncio.to_thread(
            execute,
            database,
            "update faultline.active set lease_until = faultline.now() - interval '1 second'",
        )
        await asyncio.to_thread(store.run, calls.reap())
        await asyncio.to_thread(
            execute, database, "update faultline.later set run_at = run_at + interval '1 hour'"
        )
        return "late"

    job = enqueue(store, task="work")

    drain(database, work, watchdog=False)

    assert [refusal.reason for refusal in store.run(calls.refusals(job))] == ["settled"]
    assert outcomes(store, job) == ["expired"]
