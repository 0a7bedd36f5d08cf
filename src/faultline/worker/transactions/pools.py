"""The pools that handlers borrow from in job.complete; where there is no database, what says so."""

import os
from asyncio import AbstractEventLoop
from typing import NoReturn

from faultline.config import Settings, WorkerConfig
from faultline.errors import NoDatabase
from faultline.store.pool import AsyncStore, Store
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.transactions.transaction_base import TransactionPools


def pools_of(
    settings: Settings, lease_table: LeaseTable, config: WorkerConfig, loop: AbstractEventLoop
) -> TransactionPools:
    """Connections of the worker's own; where it knows no database, an error that says so."""
    pools = stores(settings.dsn, settings.pooler, threads=config.threads_max, coroutines=config.jobs_max)
    return TransactionPools(*pools, lease_table, loop, os.getpid(), settings.pooler != "transaction")


def stores(dsn: str | None, pooler: str, *, threads: int, coroutines: int) -> tuple[Store, AsyncStore]:
    """A pool for handlers in threads and one for those in the loop, each made when first needed."""
    if dsn is None:
        return NoStore(""), NoAsyncStore("")
    prepare = pooler != "transaction"
    return (
        Store(dsn, prepare=prepare, connections_max=threads),
        AsyncStore(dsn, prepare=prepare, connections_max=coroutines),
    )


def _no_database() -> NoDatabase:
    return NoDatabase(
        "job.complete() needs a connection to the database, and this worker knows a server only: give it "
        "the DSN as well (--dsn or FAULTLINE_DSN), or have the handler return its result"
    )


class NoStore(Store):
    """Stands where a worker that works over a server has no database."""

    def connection(self) -> NoReturn:
        raise _no_database()

    def borrow(self, wait: float = 0.0) -> NoReturn:
        raise _no_database()


class NoAsyncStore(AsyncStore):
    """The same for the loop."""

    def connection(self) -> NoReturn:
        raise _no_database()

    async def borrow(self, wait: float = 0.0, *, resets: bool = False) -> NoReturn:
        raise _no_database()
