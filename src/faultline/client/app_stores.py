"""The connections of one app: a store for plain code, and one for each event loop."""

import asyncio
import os
import weakref
from collections.abc import Callable
from threading import Lock

from faultline.config import Settings
from faultline.errors import SyncInAsync
from faultline.store.pool import AsyncStore, Store


class AppStores:
    """Finds the store for the calling thread or loop; makes it when it is first needed."""

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
                    weakref.finalize(self, self._plain.close)  # also at the end of the program
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
        # After a fork the sockets are still the parent's: do not use them, and do not close them.
        if self._pid != os.getpid():
            self._forget()

    @property
    def in_use(self) -> bool:
        """Whether any store was made yet."""
        return self._plain is not None or len(self._by_loop) > 0

    def close(self) -> None:
        """Close the store of plain code."""
        plain, self._plain = self._plain, None
        if plain is not None and self._pid == os.getpid():
            plain.close()

    async def aclose(self) -> None:
        """Close the stores of this event loop and of plain code."""
        store = self._by_loop.pop(asyncio.get_running_loop(), None)
        if store is not None:
            await store.close()
        self.close()


def refuse_in_a_loop(form: str) -> None:
    """Raise SyncInAsync when a blocking form would stop an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise SyncInAsync(
        f"{form}() would block the running event loop and everything on it; use `await a{form}(...)`"
    )
