"""The app of a Django project: its database is one of DATABASES, its tasks are those of `django.tasks`."""

import contextlib

from django.db import connections

from faultline.app import Faultline
from faultline.client.sender import Sender
from faultline.config import Settings
from faultline.errors import FaultlineError
from faultline.integrations.django.carrier import DjangoCarrier
from faultline.integrations.django.conf import database_alias, dsn_of
from faultline.integrations.django.task_backend.registry import TaskRegistry
from faultline.store import calls


class DjangoSender(Sender):
    """Sends wake-ups on Django's own connections: others would keep a test's database from being dropped."""

    def _send(self, queue: str) -> None:
        self._wake(queue)

    def _send_late(self, queue: str) -> None:
        """In the thread that sends delayed wake-ups: its connection is closed at once."""
        self._hints.sending(queue)
        try:
            self._wake(queue)
        finally:
            connections[database_alias()].close()

    def _wake(self, queue: str) -> None:
        with contextlib.suppress(FaultlineError):  # only a hint: a poll finds the job
            DjangoCarrier(connections[database_alias()]).run(calls.wake(queue))


class DjangoApp(Faultline):
    """An app whose address comes from Django's settings, when it is first needed.

    `FAULTLINE["DATABASE"]` names the database, `default` if it does not. Tasks of `django.tasks` are found
    in `app.registry` beside those made with `@app.task`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.registry: TaskRegistry = TaskRegistry()
        self._sender = DjangoSender(self._stores)

    @property
    def settings(self) -> Settings:
        """The address of Django's database, and the settings of the environment."""
        return Settings.read(dsn=dsn_of(database_alias()))

    def __repr__(self) -> str:
        return "DjangoApp()"


app = DjangoApp()
"""The app of this project."""

__all__ = ["DjangoApp", "app"]
