"""A primary stands still while another is promoted: a worker that knows both goes on with the new one."""

import time

import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.support import enqueue, outcomes, state_of
from tests.support_failover import a_pair
from tests.worker.harness import RealWorker, eventually, rows

LEASE_SECONDS = 6.0
SOON = 8.0


@pytest.fixture
def pair():
    with a_pair() as pair:
        yield pair


@pytest.fixture
def worker(pair, tmp_path):
    worker = RealWorker(pair.both, tmp_path / "worker.log", seconds={"lease_for": LEASE_SECONDS})
    yield worker.wait_ready()
    worker.end()


def test_jobs_flow_soon_after_the_promotion_and_the_woken_primary_gets_no_claim(pair, worker):
    """Also a job that outlasts its lease: the pacemaker has found the new primary by itself."""
    before = Store(pair.old)
    done = enqueue(before, task="quick")
    eventually(lambda: state_of(before, done) == "succeeded")
    before.close()
    pair.standby.catch_up(pair.old)
    pair.freeze()
    time.sleep(LEASE_SECONDS)  # every part of the worker has met the silence by now
    pair.standby.promote()
    promoted = time.monotonic()
    store = Store(pair.new)

    quick = enqueue(store, task="quick")
    eventually(lambda: state_of(store, quick) == "succeeded")
    took = time.monotonic() - promoted
    long = enqueue(store, task="doze", args=f'{{"seconds": {LEASE_SECONDS * 2}}}', max_attempts=1)
    eventually(lambda: state_of(store, long) in ("succeeded", "dead"), 60)

    assert took < SOON
    assert outcomes(store, long) == ["succeeded"]
    store.close()

    pair.wake()
    old = Store(pair.old)
    left = enqueue(old, task="quick")
    old.run(calls.wake("default"))
    time.sleep(2)
    assert rows(pair.old, "select claim from faultline.active where id = %s", left) == [(None,)]
    old.close()
