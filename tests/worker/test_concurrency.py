"""How much a worker takes on: never more at once than it was told, the urgent first, little ahead."""

import asyncio
import threading
import time
from collections import Counter
from datetime import timedelta

import psycopg
from psycopg.conninfo import conninfo_to_dict

from faultline.job import Job
from faultline.store import calls
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import InProcess, drain, eventually, execute, quick, registry, rows, working


class Meter:
    """Counts who is at work, and the most there ever were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    def enter(self, *names: str) -> None:
        with self._lock:
            for name in names:
                self.now[name] += 1
                self.most[name] = max(self.most[name], self.now[name])

    def leave(self, *names: str) -> None:
        with self._lock:
            self.now.subtract(names)


def test_no_more_jobs_run_at_once_than_jobs_max(database, store):
    meter = Meter()

    async def work() -> None:
        meter.enter("all")
        await asyncio.sleep(0.02)
        meter.leave("all")

    def work_in_thread() -> None:
        meter.enter("all")
        time.sleep(0.02)
        meter.leave("all")

    for task in ("work", "work_in_thread"):
        store.run(calls.enqueue_many([new_job(task=task)] * 20))

    drain(database, work, work_in_thread, config=quick(jobs_max=3))

    assert meter.most["all"] == 3


def test_a_queue_never_runs_more_than_its_limit(database, store):
    meter = Meter()

    async def work(job: Job) -> None:
        meter.enter("all", job.queue)
        await asyncio.sleep(0.02)
        meter.leave("all", job.queue)

    for queue in ("narrow", "wide", "free"):
        store.run(calls.enqueue_many([new_job(task="work", queue=queue)] * 20))

    drain(database, work, config=quick(jobs_max=6, queues={"narrow": 1, "wide": 2, "free": None}))

    assert meter.most["narrow"] == 1
    assert meter.most["wide"] == 2
    assert meter.most["all"] <= 6


def test_a_queue_at_its_limit_goes_on_as_soon_as_it_has_room(database, store):
    """An ended job leaves room, and that is a reason to look again: the worker does not wait for the poll."""

    async def work() -> None:
        await asyncio.sleep(0.001)

    ids = store.run(calls.enqueue_many([new_job(task="work", queue="narrow")] * 20))

    with working(database, work, config=quick(queues={"narrow": 1}, poll_every=timedelta(seconds=10))):
        eventually(lambda: state_of(store, ids[-1]) == "succeeded")


def test_queues_that_were_not_asked_for_are_left_alone(database, store):
    async def work() -> None: ...

    mine, other = enqueue(store, task="work"), enqueue(store, task="work", queue="other")

    drain(database, work)

    assert (state_of(store, mine), state_of(store, other)) == ("succeeded", "queued")


def test_the_urgent_go_first(database, store):
    order: list[int] = []

    async def work(job: Job, priority: int) -> None:
        order.append(priority)

    for priority in (5, 0, -5, 5, 0, -5):
        enqueue(store, task="work", priority=priority, args=f'{{"priority": {priority}}}')

    drain(database, work, config=quick(jobs_max=1))

    assert order == [-5, -5, 0, 0, 5, 5]


def test_slow_jobs_are_not_hoarded(database, store):
    """What is claimed ahead is bounded by time: a job that takes long leaves the rest to other workers."""

    async def slow() -> None:
        await asyncio.sleep(0.5)

    store.run(calls.enqueue_many([new_job(task="slow")] * 30))
    most = 0

    with working(database, slow, config=quick(jobs_max=2)):
        end = time.monotonic() + 2
        while time.monotonic() < end:
            ((claimed,),) = rows(database, "select count(*) from faultline.active where claim is not null")
            most = max(most, claimed)
            time.sleep(0.02)

    assert 0 < most <= 4


def test_fast_jobs_are_claimed_ahead_within_the_buffers_bound(database, store):
    async def fast() -> None: ...

    store.run(calls.enqueue_many([new_job(task="fast")] * 1000))

    drain(database, fast, config=quick(jobs_max=4, buffer_max=50))

    claims = rows(database, "select token, count(*) from faultline.ledger group by token order by 2 desc")
    assert claims[0][1] <= 54
    assert len(claims) < 500


def test_a_worker_asked_for_so_many_jobs_runs_so_many(database, store):
    async def work() -> None: ...

    store.run(calls.enqueue_many([new_job(task="work")] * 20))

    code = InProcess(database, registry(work), quick(), stop_after=5).start().join()

    assert code == 0
    assert rows(database, "select count(*) from faultline.ledger where outcome = 'succeeded'") == [(5,)]


def test_a_paused_queue_is_left_alone_until_it_is_resumed(database, store):
    async def work() -> None: ...

    job = enqueue(store, task="work")
    store.run(calls.pause("default"))
    drain(database, work)
    assert outcomes(store, job) == []

    store.run(calls.resume("default"))
    drain(database, work)

    assert outcomes(store, job) == ["succeeded"]


def test_jobs_with_a_short_lease_of_their_own_keep_it(database, store):
    """The pacemaker of a worker with long leases is woken for a job whose lease is short."""

    async def work() -> None:
        await asyncio.sleep(2)

    with working(database, work) as worker:
        eventually(lambda: worker.worker._state.lease_table.turns())
        job = enqueue(store, task="work", lease_for=timedelta(seconds=1))
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["succeeded"]


def test_d11_a_table_locked_for_long_costs_no_attempt(database, store):
    """A bad migration: claims, beats and settlings run into the lock timeout, and are tried again."""
    name = conninfo_to_dict(database)["dbname"]
    execute(database, f'alter database "{name}" set lock_timeout = 50')

    async def work() -> None:
        await asyncio.sleep(0.3)

    with working(database, work):
        first = enqueue(store, task="work", max_attempts=1)
        eventually(lambda: state_of(store, first) == "running")
        with psycopg.connect(database) as migration:
            migration.execute("lock table faultline.active in access exclusive mode")
            time.sleep(1)
        second = enqueue(store, task="work", max_attempts=1)
        eventually(lambda: state_of(store, second) == "succeeded")

    assert outcomes(store, first) == outcomes(store, second) == ["succeeded"]


def test_a_worker_survives_what_a_role_or_an_admin_does_to_its_statements(database, store):
    """Statement timeouts, killed backends: tried again, no job is hurt and the worker stays."""

    async def work() -> None:
        await asyncio.sleep(0.01)

    with working(database, work):
        for _ in range(5):
            store.run(calls.enqueue_many([new_job(task="work", max_attempts=1)] * 10))
            execute(
                database,
                "select pg_cancel_backend(pid), pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and application_name = 'faultline'",
            )
            time.sleep(0.1)
        eventually(lambda: rows(database, "select count(*) from faultline.ledger where slot = 0") == [(50,)])

    assert rows(database, "select distinct outcome::text from faultline.ledger where slot = 0") == [
        ("succeeded",)
    ]
    assert rows(database, "select count(*) from faultline.dead") == [(0,)]
