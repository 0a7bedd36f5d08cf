"""The pools that handlers borrow from in job.transaction; where there is no database, what says so."""

from typing import NoReturn

from faultline.errors import NoDatabase
from faultline.store.run import AsyncStore, Store


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
        "job.transaction() needs a connection to the database, and this worker knows a server only: give it "
        "the DSN as well (--dsn or FAULTLINE_DSN), or have the handler return its result"
    )


class NoStore(Store):
    """Stands where a worker that works over a server has no database."""

    def connection(self) -> NoReturn:
        raise _no_database()


class NoAsyncStore(AsyncStore):
    """The same for the loop."""

    def connection(self) -> NoReturn:
        raise _no_database()
