"""Whether an app's own transaction is in the database of the job's lease: asked once of each maker."""

from typing import Any, Final

from faultline.errors import ConfigError, SchemaMissing, SchemaOutdated
from faultline.extensions import TransactionProvider
from faultline.store import calls
from faultline.store.carrier import async_carrier, plain_carrier
from faultline.store.driver.connect import aconnect, connect
from faultline.store.pool import AsyncStore, Store

FORM: Final = "job.complete_in"

NOT_INSTALLED: Final = (SchemaMissing, SchemaOutdated)


class DatabaseCheck:
    """Compares identities; without a DSN, where a worker knows a server only, there is nothing to compare.

    The connections of one maker have one address, so one of them speaks for all. Should another lead
    elsewhere, the fence refuses it as well, only with other words.
    """

    def __init__(self, dsn: str | None) -> None:
        self._dsn = dsn
        self._ours: str | None = None
        self._same: set[TransactionProvider] = set()

    async def acheck(self, provider: TransactionProvider, conn: Any, task: str) -> None:
        """ConfigError where a connection of this provider is to another database."""
        if self._dsn is None or provider in self._same:
            return
        if self._ours is None:
            async with await aconnect(self._dsn) as own:
                self._ours = await AsyncStore.run_in(own, calls.database_identity())
        try:
            theirs = await async_carrier(conn, FORM).run(calls.database_identity())
        except NOT_INSTALLED:
            theirs = None
        self._compare(provider, theirs, task)

    def check(self, provider: TransactionProvider, conn: Any, task: str) -> None:
        """The same for a plain connection."""
        if self._dsn is None or provider in self._same:
            return
        if self._ours is None:
            with connect(self._dsn) as own:
                self._ours = Store.run_in(own, calls.database_identity())
        try:
            theirs = plain_carrier(conn, FORM).run(calls.database_identity())
        except NOT_INSTALLED:
            theirs = None
        self._compare(provider, theirs, task)

    def _compare(self, provider: TransactionProvider, theirs: str | None, task: str) -> None:
        if theirs != self._ours:
            raise ConfigError(
                f"the transaction of task {task} is in another database than its job, so the two cannot "
                "commit together; nothing was run: give its maker the database of the worker, or use "
                "job.complete()"
            )
        self._same.add(provider)
