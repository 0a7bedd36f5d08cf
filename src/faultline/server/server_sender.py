"""sender_on: a sender of jobs over the one store of the server, on its loop."""

from faultline.client.app_stores import AppStores
from faultline.client.sender import Sender
from faultline.config import Settings
from faultline.store.pool import AsyncStore


class ServerStores(AppStores):
    """The one store of a server process, where an app has one for each of its loops."""

    def __init__(self, store: AsyncStore) -> None:
        super().__init__(lambda: Settings(dsn=store.dsn))
        self._store = store

    def of_this_loop(self) -> AsyncStore:
        return self._store


def sender_on(store: AsyncStore) -> Sender:
    """A sender whose calls go over this store."""
    return Sender(ServerStores(store))
