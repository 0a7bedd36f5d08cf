"""`async with app.worker():` a worker beside other work in one event loop."""

import asyncio
from datetime import timedelta

import pytest

from faultline import Faultline
from faultline.errors import CannotConnect, ConfigError, WorkerEnded
from faultline.store import calls
from faultline.worker.worker import Worker
from tests.support import enqueue, outcomes, state_of
from tests.worker.harness import PATIENCE, eventually


@pytest.fixture
def app(database):
    with Faultline(database, pooler="none") as app:
        yield app


async def until(look):
    return await asyncio.to_thread(eventually, look, PATIENCE)


def test_jobs_run_while_the_block_lasts(app, store):
    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    async def main():
        async with app.worker(concurrency=2):
            return await (await greet.aenqueue("Ada")).aresult(timeout=PATIENCE)

    assert asyncio.run(main()) == "hello Ada"
    assert store.run(calls.list_workers(False, 10, None)) == []


def test_a_running_job_ends_within_the_grace(app, store):
    started, going_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def nap() -> str:
        started.set()
        await going_on.wait()
        return "slept"

    job = enqueue(store, task="nap")

    async def main():
        async with app.worker():
            await started.wait()
            asyncio.get_running_loop().call_later(0.3, going_on.set)

    asyncio.run(main())

    assert outcomes(store, job) == ["succeeded"]


def test_what_does_not_end_within_the_grace_is_given_back(app, store):
    started = asyncio.Event()

    @app.task
    async def nap() -> None:
        started.set()
        await asyncio.sleep(PATIENCE)

    job = enqueue(store, task="nap")

    async def main():
        async with app.worker(grace=timedelta(seconds=0.2)):
            await started.wait()

    asyncio.run(main())

    assert (outcomes(store, job), state_of(store, job)) == (["released"], "queued")


def test_a_worker_that_cannot_start_raises_before_the_block(database):
    async def main(app, **options):
        async with app.worker(**options):
            raise AssertionError("the block was entered")

    with pytest.raises(ConfigError, match="has no option"):
        asyncio.run(main(Faultline(database), concurency=2))
    with pytest.raises(CannotConnect):
        asyncio.run(main(Faultline("host=127.0.0.1 port=1 dbname=shop connect_timeout=2")))


class Broken(Exception):
    pass


@pytest.fixture
def breaking(monkeypatch):
    """A worker that ends by an error once it is told to."""
    now = asyncio.Event()

    async def run(self, **how):
        self.ready.set()
        await now.wait()
        raise Broken

    monkeypatch.setattr(Worker, "run", run)
    return now


def test_an_error_of_the_worker_ends_the_block_and_is_raised(app, breaking):
    cleaned = []

    async def main():
        async with app.worker():
            asyncio.get_running_loop().call_later(0.1, breaking.set)
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                cleaned.append(True)

    with pytest.raises(Broken):
        asyncio.run(main())

    assert cleaned == [True]


def test_an_error_at_the_blocks_very_end_is_raised_and_cancels_nothing_behind_it(app, breaking):
    async def main():
        with pytest.raises(Broken):
            async with app.worker():
                breaking.set()
                working = next(task for task in asyncio.all_tasks() if task.get_name() == "faultline worker")
                while not working.done():  # noqa: ASYNC110 - to leave in the very step of its end
                    await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        return asyncio.current_task().cancelling()

    assert asyncio.run(main()) == 0


def test_an_error_of_the_block_stays_the_blocks(app, breaking):
    async def main():
        async with app.worker():
            breaking.set()
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                raise ValueError("of the block") from None

    with pytest.raises(ValueError, match="of the block"):
        asyncio.run(main())


def test_an_exit_code_that_nobody_asked_for_is_an_error(app, monkeypatch):
    async def run(self, **how):
        self.ready.set()
        await asyncio.sleep(0.1)
        return 3

    monkeypatch.setattr(Worker, "run", run)

    async def main():
        async with app.worker():
            await asyncio.sleep(PATIENCE)

    with pytest.raises(WorkerEnded, match="exit code 3"):
        asyncio.run(main())


def test_a_worker_that_has_no_more_to_do_leaves_the_block_alone(app, store):
    @app.task
    async def tidy() -> None: ...

    job = enqueue(store, task="tidy")

    async def main():
        async with app.worker(until_empty=True):
            await until(lambda: outcomes(store, job) == ["succeeded"])
            await asyncio.sleep(0.5)
        return "at its end"

    assert asyncio.run(main()) == "at its end"


def test_a_cancelled_block_stops_its_worker_and_stays_cancelled(app, store):
    @app.task
    async def tidy() -> None: ...

    async def main():
        entered = asyncio.Event()

        async def block():
            async with app.worker():
                entered.set()
                await asyncio.sleep(PATIENCE)

        running = asyncio.create_task(block())
        await entered.wait()
        running.cancel()
        await asyncio.wait([running])
        return running.cancelled()

    assert asyncio.run(main())
    assert store.run(calls.list_workers(False, 10, None)) == []
