"""What tests of the worker need: a store, tables for effects, real workers, and a way that can be cut."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.recycled_databases import Preparation
from tests.support_proxy import Proxy
from tests.worker.harness import LEASE, RealWorker, execute

TABLES = (
    "create table {} (job_id bigint not null, token bigint not null, said text,"
    " at timestamptz default clock_timestamp())"
)


def with_effects(dsn: str) -> None:
    """Tables for effects, and a hold-fire that is as short as the leases of these tests."""
    with closing(Store(dsn)) as store:
        store.run(calls.configure(default_lease=LEASE / 2))
    execute(dsn, ";".join(TABLES.format(name) for name in ("effects", "notes")))


@pytest.fixture
def prepared() -> tuple[Preparation, ...]:
    return (with_effects,)


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """A store on this test's database."""
    with closing(Store(database)) as store:
        yield store


@pytest.fixture
def real_worker(database: str, store: Store, tmp_path: Path) -> Iterator[Callable[..., RealWorker]]:
    """Starts workers in processes of their own."""
    started: list[RealWorker] = []

    def start(dsn: str = database, **options: Any) -> RealWorker:
        options = {"seconds": {"lease_for": LEASE.total_seconds()}, **options}
        worker = RealWorker(dsn, tmp_path / f"worker-{len(started)}.log", **options)
        started.append(worker)
        return worker.wait_ready()

    yield start
    for worker in started:
        worker.end()


@pytest.fixture
def proxy(database: str) -> Iterator[Proxy]:
    """A way to the database that can be cut; `proxy.dsn` leads through it."""
    with Proxy(database) as proxy:
        yield proxy
