"""Several processes export one coherent set, and one that dies takes nothing back that it had counted."""

import os
import re
import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faultline.metrics.process_group import ProcessGroup as Files
from faultline.metrics.process_group import write
from faultline.metrics.series import MetricSeries
from faultline.store import calls
from faultline.store.pool import Store
from tests.metrics.conftest import value
from tests.supervisor.conftest import NOTES, Group
from tests.support import new_job
from tests.worker.harness import eventually, execute

SETTLED = re.compile(r'^faultline_jobs_settled_total\{.*outcome="succeeded".*\} (\S+)$', re.MULTILINE)


def test_a_dead_process_keeps_its_counts_and_loses_its_gauges(tmp_path):
    own, figures, living = MetricSeries(), MetricSeries(), {os.getpid()}
    figures.add("jobs_settled", ("q", "t", "succeeded"), 5)
    figures.set("worker_jobs_in_hand", (), 3)
    write(tmp_path, figures)
    group = Files(tmp_path, own, lambda: living)

    alive = group.snapshot()
    living.clear()
    dead = [group.snapshot() for _ in range(3)]

    assert alive["jobs_settled"]["q", "t", "succeeded"] == 5
    assert alive["worker_jobs_in_hand"][()] == 3
    counted = [each.get("jobs_settled", {}).get(("q", "t", "succeeded")) for each in dead]
    assert counted == [5, 5, 5]
    assert "worker_jobs_in_hand" not in dead[0]
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_is_left_out(tmp_path):
    (tmp_path / "17.json").write_text("{half a")

    assert Files(tmp_path, MetricSeries(), lambda: {17}).snapshot() == {}


@pytest.fixture
def group(database: str, tmp_path: Path) -> Iterator[Callable[..., Group]]:
    execute(database, NOTES)
    started: list[Group] = []

    def start(*words: str) -> Group:
        started.append(Group(database, tmp_path / "group.log", words, {}))
        return started[-1]

    yield start
    for each in started:
        each.end()


def scrape(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
            return str(reply.read(), "utf-8")
    except OSError:
        return ""


def succeeded(port: int) -> float:
    return sum(map(float, SETTLED.findall(scrape(port))))


def test_two_processes_are_one_set_and_nothing_is_counted_twice(group, database):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    store = Store(database)
    started = group("--processes", "2", "--metrics", str(port))
    workers = started.working(2)
    store.run(calls.enqueue_many([new_job(task="nap", args='{"seconds": 0}') for _ in range(30)]))

    eventually(lambda: value(scrape(port), "faultline_processes") == 2 and succeeded(port) == 30)
    one = scrape(port)
    os.kill(workers[0][1], signal.SIGKILL)
    eventually(lambda: value(scrape(port), "faultline_process_restarts_total") == 1)
    started.working(2)
    store.run(calls.enqueue_many([new_job(task="nap", args='{"seconds": 0}') for _ in range(10)]))
    eventually(lambda: succeeded(port) == 40)

    assert value(one, "faultline_processes") == 2
    assert value(one, "faultline_worker_slots", state="idle") == 20
    assert not [line for line in one.splitlines() if line.startswith("faultline_queue_jobs")]
    store.close()
    started.signal(signal.SIGTERM)
    assert started.wait() == 0
