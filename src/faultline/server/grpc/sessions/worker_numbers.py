"""WorkerNumbers: the worker numbers that a key may use. They are small and in a row: easy to guess."""

from typing import Final

import psycopg

from faultline.errors import DatabaseError
from faultline.server.auth import Caller
from faultline.store import calls
from faultline.store.pool import AsyncStore

KNOWN_MAX: Final = 10_000
NUMBER_MAX: Final = 2**31 - 1


class WorkerNumbers:
    """Remembers the key of each worker; for an unknown worker it asks the database.

    A key is identified by its name, which stays when the key is rotated.
    """

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._known: dict[int, str | None] = {}

    def learn(self, worker: int, caller: Caller) -> None:
        """Note that this caller registered this worker."""
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[worker] = caller.name

    async def own(self, worker: int, caller: Caller) -> int | None:
        """The number, if the worker belongs to the caller; None for no number and for any other."""
        if not 0 < worker <= NUMBER_MAX:
            return None
        if worker not in self._known:
            found = await self._store.run(calls.worker_key(worker))
            if found is None or found[0] is None:
                return None
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[worker] = found[0]
        return worker if self._known[worker] == caller.name else None

    async def named(self, worker: int, caller: Caller) -> int | None:
        """The same for a message with another purpose: a beat need not wait for it in an outage."""
        try:
            return await self.own(worker, caller)
        except (DatabaseError, psycopg.Error, TimeoutError):
            return None
