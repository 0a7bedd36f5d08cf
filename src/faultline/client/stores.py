"""The connections of one app: a store for plain code, and one for each event loop."""

import asyncio
import os
import weakref
from collections.abc import Callable
from threading import Lock

from faultline.config import Settings
from faultline.errors import SyncInAsync
from faultline.store.run import AsyncStore, Store


class Stores:
    """Finds the store that fits where the call was made; makes it when it is first needed."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._making = Lock()
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._plain: Store | None = None
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncStore] = (
            weakref.WeakKeyDictionary()
        )

    def plain(self) -> Store:
        """The store for plain code."""
        if self._plain is None or self._pid != os.getpid():
            with self._making:
                self._leave_the_parents()
                if self._plain is None:
                    settings = self._settings()
                    self._plain = Store(settings.require_dsn(), prepare=settings.prepare)
                    weakref.finalize(self, self._plain.close)  # also as the program ends
        return self._plain

    def of_this_loop(self) -> AsyncStore:
        """The store of the running event loop: a pool cannot move from one loop to another."""
        loop = asyncio.get_running_loop()
        self._leave_the_parents()
        store = self._by_loop.get(loop)
        if store is None:
            settings = self._settings()
            store = self._by_loop[loop] = AsyncStore(settings.require_dsn(), prepare=settings.prepare)
        return store

    def _leave_the_parents(self) -> None:
        # After a fork the sockets are still the parent's: use none of them, and close none of them.
        if self._pid != os.getpid():
            self._forget()

    @property
    def in_use(self) -> bool:
        """Whether any store was made yet."""
        return self._plain is not None or len(self._by_loop) > 0

    def close(self) -> None:
        """Close what plain code used."""
        plain, self._plain = self._plain, None
        if plain is not None and self._pid == os.getpid():
            plain.close()

    async def aclose(self) -> None:
        """Close what this event loop used, and what plain code used."""
        store = self._by_loop.pop(asyncio.get_running_loop(), None)
        if store is not None:
            await store.close()
        self.close()


def refuse_in_a_loop(form: str) -> None:
    """Raise SyncInAsync when a blocking form is called where it would stop an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise SyncInAsync(
        f"{form}() would block the running event loop and everything on it; use `await a{form}(...)`"
    )
