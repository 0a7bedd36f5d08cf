"""`faultline worker` in a process of its own, and the reading of its options."""

import json
import signal
from datetime import timedelta

import pytest

from faultline.cli.serve.processes import command_of
from faultline.cli.serve.worker import WorkerOptions
from faultline.cli.terminal import OutputOptions, Terminal
from faultline.errors import ConfigError, InputError
from faultline.store import calls
from faultline.worker.options import worker_config
from tests.support import enqueue, state_of


def test_options_become_a_configuration():
    config = worker_config(["billing=5,mail", "slow"], concurrency=3, lease=timedelta(seconds=3))

    assert dict(config.queues) == {"billing": 5, "mail": None, "slow": None}
    assert (config.jobs_max, config.lease_for, config.threads_max) == (3, timedelta(seconds=3), 3)
    assert dict(worker_config([]).queues) == {"default": None}
    assert worker_config([], children=3).children_max == 3


def test_settings_that_cannot_work_are_refused_before_anything_starts(run):
    with pytest.raises(InputError):
        worker_config(["billing=0"])
    with pytest.raises(ConfigError):
        worker_config([], lease=timedelta(milliseconds=500), grace=timedelta(seconds=-1))
    assert run("worker", "nowhere:app", "--lease", "0s").exit_code == 2


def test_a_worker_drains_its_queues_and_leaves_with_0(start, shop, database, store):
    paid = enqueue(store, task="charge", args='{"order_id": 7}', queue="billing")
    greeted = enqueue(store, task="greet", args='{"name": "Ada"}')

    worker = start(
        "worker", "shop_under_test:app", "-q", "billing=2,default", "--until-empty", "--dsn", database
    )
    _, said = worker.communicate(timeout=30)

    assert worker.returncode == 0, said
    assert store.run(calls.get(paid)).result == "charged 7"
    assert store.run(calls.get(greeted)).result == "hello Ada"
    assert json.loads(said.splitlines()[-1])["event"] == "worker_exit"


def test_a_worker_stops_after_so_many_jobs(start, shop, database, store):
    jobs = [enqueue(store, task="greet", args='{"name": "Ada"}') for _ in range(3)]

    worker = start(
        "worker",
        "shop_under_test:app",
        "--jobs",
        "1",
        "--concurrency",
        "1",
        "--log",
        "lines",
        FAULTLINE_DSN=database,
    )
    _, said = worker.communicate(timeout=30)

    assert worker.returncode == 0, said
    assert "worker_exit" in said
    assert "succeeded" in [state_of(store, job) for job in jobs]


def test_sigterm_ends_an_idle_worker_with_0(start, shop, database, store):
    worker = start("worker", "shop_under_test:app", "--name", "mine", "--dsn", database)
    job = enqueue(store, task="greet", args='{"name": "Ada"}')
    while state_of(store, job) != "succeeded":
        assert worker.poll() is None, worker.communicate()
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(20) == 0
    assert [known.name for known in store.run(calls.list_workers(gone=True))] == ["mine"]


def test_a_worker_that_cannot_connect_says_so_in_one_line(start, shop):
    worker = start("worker", "shop_under_test:app", "--dsn", "host=127.0.0.1 port=1 password=topsecret")
    _, said = worker.communicate(timeout=30)

    assert worker.returncode == 1
    assert "cannot connect" in said
    assert "topsecret" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("count", ["0", "-1", "two", "1000000", "1.5"])
def test_a_number_of_processes_that_cannot_be_is_refused(run, count):
    told = run("worker", "nowhere:app", "--processes", count)

    assert told.exit_code == 2
    assert "is not a whole number from 1 to 256" in told.stderr


def test_several_processes_cannot_stop_after_an_exact_number_of_jobs(run, database):
    told = run("worker", "nowhere:app", "--processes", "2", "--jobs", "5", "--dsn", database)

    assert told.exit_code == 2
    assert "--jobs" in told.stderr
    assert "--until-empty" in told.stderr


def test_being_supervised_is_not_for_people(run):
    told = run("worker", "nowhere:app", "--supervised", "999")

    assert told.exit_code == 2
    assert "--processes" in told.stderr
    assert "--supervised" not in run("worker", "--help").stdout


def test_a_workers_command_line_repeats_what_was_asked_and_hides_the_dsn():
    wanted = WorkerOptions(
        app="shop:app", queues=("billing=5,mail", "slow"), concurrency=3, threads=None, children=2,
        lease=timedelta(seconds=3), grace=timedelta(minutes=1, milliseconds=5), name="here",
        until_empty=True, jobs=None, log="json",
    )  # fmt: skip
    line = command_of(Terminal(OutputOptions(dsn="password=topsecret", quiet=True)), wanted, "here/2")

    assert line[3:] == [
        "faultline", "worker", "shop:app", "--queues", "billing=5,mail", "--queues", "slow",
        "--concurrency", "3", "--children", "2", "--log", "json", "--lease", "3s", "--grace", "1m5ms",
        "--until-empty", "--quiet", "--name", "here/2", "--supervised",
    ]  # fmt: skip
    assert "topsecret" not in " ".join(line)


def test_until_empty_is_explained_by_what_it_waits_for(run):
    """Jobs for later stay in their queue: the worker leaves them there."""
    assert "Stop when nothing is due any more." in run("worker", "--help").stdout
