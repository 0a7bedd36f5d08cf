"""Numbers: which worker numbers a key may speak for. They are small and in a row: easy to guess."""

from typing import Final

import psycopg

from faultline.access import Caller
from faultline.errors import DatabaseError
from faultline.store import calls
from faultline.store.run import AsyncStore

KNOWN_MAX: Final = 10_000
NUMBER_MAX: Final = 2**31 - 1


class Numbers:
    """Remembers with which key each worker came; of one that it does not know it asks the database.

    A key is told by its name, which stays when the key is rotated.
    """

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._known: dict[int, str | None] = {}

    def learn(self, worker: int, caller: Caller) -> None:
        """This worker was registered by this caller."""
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[worker] = caller.name

    async def own(self, worker: int, caller: Caller) -> int | None:
        """The number, if the worker is the caller's own; None for no number and for any other."""
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
        """The same, for a message that is about something else: a beat need not wait for it in an outage."""
        try:
            return await self.own(worker, caller)
        except (DatabaseError, psycopg.Error, TimeoutError):
            return None
