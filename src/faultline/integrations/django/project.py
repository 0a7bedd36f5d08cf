"""The app of a Django project: its database is one of DATABASES, its tasks are those of `django.tasks`."""

from django.db import connections

from faultline.app import Faultline
from faultline.client.app_stores import AppStores
from faultline.client.hints import Hints
from faultline.client.sender import Sender
from faultline.config import Settings
from faultline.integrations.django.carrier import DjangoCarrier
from faultline.integrations.django.conf import database_alias, dsn_of
from faultline.integrations.django.handler_connections import (
    ProjectTransactions,
    with_live_connections,
    with_own_thread,
)
from faultline.integrations.django.task_backend.registry import TaskRegistry
from faultline.store.call import Call


class DjangoSender(Sender):
    """Sends wake-ups on Django's own connections: others would keep a test's database from being dropped."""

    def __init__(self, stores: AppStores) -> None:
        super().__init__(stores)
        self._hints = Hints(_wake, self.arun)


def _wake(hint: Call[None]) -> None:
    """On the connection of this thread; where that is not open, as for delayed wake-ups, on a brief one."""
    conn = connections[database_alias()]
    if conn.connection is not None:
        DjangoCarrier(conn).run(hint)
        return
    brief = connections.create_connection(database_alias())
    try:
        DjangoCarrier(brief).run(hint)
    finally:
        brief.close()


class DjangoApp(Faultline):
    """An app whose address comes from Django's settings, when it is first needed.

    `FAULTLINE["DATABASE"]` names the database, `default` if it does not. Tasks of `django.tasks` are found
    in `app.registry` beside those made with `@app.task`.

    >>> from faultline.integrations.django import app
    >>> app
    DjangoApp()
    """

    registry: TaskRegistry

    def __init__(self) -> None:
        super().__init__()
        self.registry = TaskRegistry()
        self._sender = DjangoSender(self._stores)
        self.transactions.use("django", ProjectTransactions())
        self.middleware(with_live_connections)
        self.middleware(with_own_thread)

    @property
    def settings(self) -> Settings:
        """The address of Django's database, and the settings of the environment."""
        return Settings.read(dsn=dsn_of(database_alias()))

    def __repr__(self) -> str:
        return "DjangoApp()"


app = DjangoApp()
"""The app of this project."""
