"""A server whose database does not answer is awake: its workers keep their streams to it."""

import time
from datetime import timedelta

from faultline.server.auth import CACHE_SECONDS_MAX
from tests.remote.harness import Served, working
from tests.support import enqueue, state_of
from tests.support_proxy import Proxy
from tests.worker.harness import eventually, quick

LEASE = timedelta(seconds=6)


async def noop() -> None: ...


def test_a_worker_keeps_its_stream_to_a_server_that_waits_for_its_database(database, store, caplog):
    with Proxy(database) as proxy:
        served = Served(proxy.dsn)
        try:
            with working(served, noop, config=quick(lease_for=LEASE)):
                first = enqueue(store, task="noop")
                eventually(lambda: state_of(store, first) == "succeeded")
                time.sleep(CACHE_SECONDS_MAX)  # so that its next message has the key looked up
                proxy.hold()
                second = enqueue(store, task="noop")
                time.sleep(LEASE.total_seconds())  # twice the silence after which a stream is left
                proxy.flow()
                eventually(lambda: state_of(store, second) == "succeeded")
        finally:
            proxy.flow()
            served.close()

    assert not [record.getMessage() for record in caplog.records if "silent" in record.getMessage()]
