"""The trap of a storm: a worker that stops itself as it sends a success, whichever way it is sent."""

import os
import subprocess

import psycopg
import pytest

from proof.nemesis.crew import TRAPPED, WORKER, state_of
from proof.nemesis.ground import prepare
from tests.worker.harness import eventually


@pytest.mark.parametrize(("queue", "task"), [("ambushes", "ambush"), ("plain-ambushes", "plain_ambush")])
def test_a_trapped_worker_freezes_as_it_sends_its_success(empty_database, queue, task):
    prepare(empty_database)
    with psycopg.connect(empty_database, autocommit=True) as conn:
        conn.execute("select faultline.enqueue(%s, '{\"request\": 1}', queue => %s)", [task, queue])
    orders = TRAPPED[queue]
    environment = {**os.environ, **dict(orders.environment), "FAULTLINE_DSN": empty_database}

    with subprocess.Popen([*WORKER, *orders.flags], env=environment, stderr=subprocess.DEVNULL) as worker:
        try:
            eventually(lambda: state_of(worker.pid) == "T")
        finally:
            worker.kill()
