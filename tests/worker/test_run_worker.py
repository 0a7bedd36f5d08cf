"""A worker in a program of one's own: `app.run_worker()` and `await app.arun_worker()`."""

import asyncio
import inspect
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

from faultline import Faultline, WorkerConfig
from faultline.cli.serve.worker import WorkerOptions
from faultline.config import Settings
from faultline.errors import ConfigError, InputError, SyncInAsync
from faultline.worker.options import RunOptions
from tests.support import enqueue, outcomes, state_of
from tests.worker.harness import PATIENCE, eventually, rows

PROGRAM = """
import json, signal, sys, time
from datetime import timedelta
from faultline import Faultline

app = Faultline(sys.argv[1])

@app.task(queue="naps")
def nap(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"

def own(number, frame): ...

if __name__ == "__main__":
    before = signal.signal(signal.SIGTERM, own), signal.signal(signal.SIGINT, own)
    code = app.run_worker(concurrency=2, lease=timedelta(seconds=5), name="program")
    after = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    print(json.dumps({"code": code, "restored": after == (own, own)}))
"""

STARTED = "select queues from faultline.workers where name = 'program' and stopped_at is null"
RUNNING = "select 1 from faultline.active where claim is not null"


@pytest.fixture
def app(database):
    with Faultline(database, pooler="none") as app:
        yield app


@pytest.fixture
def naps(app):
    """A task whose handler lasts until it is told to go on, or is cancelled."""
    going_on = asyncio.Event()

    @app.task(queue="naps", max_attempts=1)
    async def nap() -> str:
        await going_on.wait()
        return "slept"

    nap.going_on = going_on
    return nap


async def until(look, patience=PATIENCE):
    """What `eventually` does, beside a worker in the same event loop."""
    return await asyncio.to_thread(eventually, look, patience)


def test_a_worker_serves_every_queue_that_the_tasks_name(app, store, database):
    @app.task(queue="mail")
    async def send() -> str:
        return "sent"

    @app.task
    def tidy() -> str:
        return "tidied"

    jobs = [send.enqueue().id, tidy.enqueue().id]

    assert asyncio.run(app.arun_worker(until_empty=True, name="one")) == 0

    assert [state_of(store, job) for job in jobs] == ["succeeded"] * 2
    assert rows(database, "select name, queues from faultline.workers") == [("one", ["default", "mail"])]


def test_options_bound_a_worker_as_those_of_the_command_line_do(app, store, database):
    @app.task(queue="mail")
    async def send() -> None: ...

    jobs = [send.enqueue().id for _ in range(3)]

    ran = app.arun_worker(queues="mail=1", concurrency=3, lease=timedelta(seconds=5), stop_after=2)
    assert asyncio.run(ran) == 0

    assert sorted(state_of(store, job) for job in jobs) == ["queued", "succeeded", "succeeded"]
    assert rows(database, "select queues, jobs_max from faultline.workers") == [(["mail"], 3)]


def test_a_whole_configuration_takes_the_place_of_options(app, store):
    @app.task(run="thread")
    def work() -> None: ...

    job = work.enqueue().id
    config = WorkerConfig(jobs_max=1, recycle_after=5)

    assert asyncio.run(app.arun_worker(config=config, until_empty=True)) == 0
    with pytest.raises(ConfigError, match="leave out lease, or leave out config"):
        asyncio.run(app.arun_worker(config=config, lease=timedelta(seconds=5)))

    assert state_of(store, job) == "succeeded"


def test_a_cancelled_worker_lets_its_jobs_finish(naps, app, store, database):
    async def main() -> None:
        job = (await naps.aenqueue()).id
        working = asyncio.create_task(app.arun_worker())
        await until(lambda: rows(database, RUNNING))

        working.cancel()
        await asyncio.sleep(0.3)
        assert not working.done()
        naps.going_on.set()
        with pytest.raises(asyncio.CancelledError):
            await working

        assert outcomes(store, job) == ["succeeded"]
        await app.aclose()

    asyncio.run(main())
    assert rows(database, "select count(*) from faultline.workers where stopped_at is null") == [(0,)]


def test_a_worker_that_is_cancelled_twice_gives_its_jobs_back(naps, app, store, database):
    async def main() -> None:
        job = (await naps.aenqueue()).id
        working = asyncio.create_task(app.arun_worker(grace=timedelta(minutes=5)))
        await until(lambda: rows(database, RUNNING))

        working.cancel()
        await asyncio.sleep(0.3)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

        assert (state_of(store, job), outcomes(store, job)) == ("queued", ["released"])
        await app.aclose()

    asyncio.run(main())


def test_a_timeout_round_a_worker_is_a_cancellation(app, store):
    limits: list[asyncio.Timeout] = []

    @app.task
    async def work() -> None:
        limits[0].reschedule(asyncio.get_running_loop().time())

    job = work.enqueue().id

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60) as limit:
                limits.append(limit)
                await app.arun_worker()

    asyncio.run(main())
    assert state_of(store, job) == "succeeded"


def test_a_cancelled_worker_does_not_wait_for_a_database_that_never_answers():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        app = Faultline(f"host=127.0.0.1 port={silent.getsockname()[1]} user=a dbname=a", pooler="none")

        async def main() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await app.arun_worker()

        began = time.monotonic()
        asyncio.run(main())
        assert time.monotonic() - began < PATIENCE / 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_a_program_that_runs_a_worker_finish_and_go_on(database, store, tmp_path, number):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    job = enqueue(store, task="nap", queue="naps", args='{"seconds": 1.0}')
    with subprocess.Popen([sys.executable, str(program), database], stdout=subprocess.PIPE) as process:
        try:
            assert eventually(lambda: rows(database, STARTED)) == [(["default", "naps"],)]
            eventually(lambda: rows(database, RUNNING))

            process.send_signal(number)

            said, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()

    assert json.loads(said) == {"code": 0, "restored": True}
    assert outcomes(store, job) == ["succeeded"]


def test_the_blocking_form_is_refused_where_it_cannot_work(app):
    refused: list[BaseException] = []

    def elsewhere() -> None:
        try:
            app.run_worker(until_empty=True)
        except ConfigError as error:
            refused.append(error)

    async def in_a_loop() -> None:
        app.run_worker(until_empty=True)

    with pytest.raises(SyncInAsync, match="await arun_worker"):
        asyncio.run(in_a_loop())
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(PATIENCE)
    assert "main thread" in str(refused[0])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"concurency": 5}, "no option 'concurency'; did you mean concurrency"),
        ({"jobs": 5}, "no option 'jobs'; did you mean stop_after"),
        ({"lease_for": timedelta(seconds=5)}, "did you mean lease"),
        ({"lease": timedelta(days=9)}, "lease"),
        ({"concurrency": 0}, "jobs_max is a whole number"),
        ({"queues": 5}, "queues cannot be 5; it takes"),
        ({"queues": [5]}, r"queues cannot be \[5\]"),
        ({"queues": "mail=0"}, "how many jobs may run at once"),
    ],
)
def test_wrong_options_are_named(options, says):
    with pytest.raises((ConfigError, InputError), match=says):
        asyncio.run(Faultline("dbname=a").arun_worker(**options))


def test_a_program_has_the_options_of_the_command_line():
    """`jobs` is called `stop_after`; the other options concern the terminal and the files of TLS."""
    terminals = {"app", "jobs", "log", "metrics", "key_file", "tls_ca", "tls_cert", "tls_key"}

    assert set(inspect.signature(WorkerOptions).parameters) - terminals == (
        set(RunOptions.__annotations__) - {"config", "stop_after"}
    )


def test_a_server_in_the_environment_takes_the_place_of_the_database(app, monkeypatch):
    pytest.importorskip("grpc")
    monkeypatch.setenv("FAULTLINE_SERVER", "http://localhost:8000")
    assert app.settings != Settings()

    with pytest.raises(ConfigError, match="a worker speaks gRPC"):
        asyncio.run(app.arun_worker(until_empty=True))
