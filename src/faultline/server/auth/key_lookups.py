"""Lookups of API keys in the database: one query at a time, for all keys that wait.

With a query for each key, a flood of wrong keys delays every valid key that the server does not remember,
for example all of them after a restart. A query for two thousand keys takes little longer than one for one.
"""

import asyncio
from typing import Final

from faultline.store import calls
from faultline.store.connection_turns import taking
from faultline.store.pool import AsyncStore
from faultline.store.rows import FoundKey

BATCH_MAX: Final = 2_000


class KeyLookups:
    """The lookups of one kind of keys, which take turns with other kinds.

    >>> async def name_of(lookups: KeyLookups, id: str) -> str | None:
    ...     found = await lookups.find(id)
    ...     return found and found.name
    """

    def __init__(self, store: AsyncStore, kind: str) -> None:
        self._store = store
        self._kind = kind
        self._waiting: list[tuple[str, asyncio.Future[FoundKey | None]]] = []
        self._asking: asyncio.Task[None] | None = None

    async def find(self, id: str) -> FoundKey | None:
        """The row of a key, read after this call began; None if there is none."""
        answer: asyncio.Future[FoundKey | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((id, answer))
        if self._asking is None or self._asking.done():
            with taking("door", self._kind):
                self._asking = asyncio.create_task(self._ask())
        return await answer

    async def _ask(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
            try:
                found = await self._store.run(calls.find_keys([id for id, _ in batch]))
            except BaseException as error:
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                continue
            for id, answer in batch:
                if not answer.done():
                    answer.set_result(found.get(id))
