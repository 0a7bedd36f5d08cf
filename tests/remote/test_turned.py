"""Over a server, too: a database that turns read-only costs no job an attempt."""

import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.promises.standby import a_primary
from tests.remote.harness import Served, working
from tests.support import enqueue, outcomes, state_of
from tests.support_turning import Turning
from tests.worker import turning_app as shop
from tests.worker.conftest import TABLES
from tests.worker.harness import eventually, execute, quick, rows


@pytest.fixture(scope="module")
def turning():
    with a_primary() as server:
        turning = Turning(server)
        execute(turning.dsn, ";".join(TABLES.format(name) for name in ("effects", "notes")))
        yield turning


@pytest.mark.parametrize("task", ["in_loop", "in_child"])
def test_a_write_of_the_handler_that_the_database_refuses_costs_no_attempt(turning, monkeypatch, task):
    monkeypatch.setenv("FAULTLINE_DSN", turning.dsn)
    execute(turning.dsn, "select setval('faultline.tokens', 1, false)")  # the second claim meets it
    store, served = Store(turning.dsn), Served(turning.dsn)
    try:
        with working(served, *shop.app.registry, config=quick(jobs_max=1), dsn=turning.dsn):
            first = enqueue(store, task=task)
            eventually(lambda: state_of(store, first) == "succeeded")
            job = enqueue(store, task=task, args='{"then": "turn"}', max_attempts=1)
            eventually(lambda: state_of(store, job) in ("succeeded", "dead"))
    finally:
        turning.take_writes()
        served.close()

    assert outcomes(store, job) == ["snoozed", "succeeded"]
    assert store.run(calls.get(job)).attempt == 1
    assert rows(turning.dsn, "select count(*) from effects where job_id = %s", job) == [(1,)]
    store.close()
