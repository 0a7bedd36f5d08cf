"""Django's connections around each job, as Django has them around each request: middleware of the app."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connections

from faultline.extensions.django_transactions import DjangoTransactions
from faultline.integrations.django.conf import database_alias
from faultline.job import Job


def with_live_connections(job: Job, call: Callable[[], Any]) -> Any:
    """Around plain handlers: connections of this thread that are too old, or broken, are closed."""
    close_old_connections()
    try:
        return call()
    finally:
        close_old_connections()


async def with_own_thread(job: Job, call: Callable[[], Awaitable[Any]]) -> Any:
    """Around async handlers: the ORM's calls of one job have a thread of their own, and end with it.

    Without it those of all jobs would wait for one thread.
    """
    async with ThreadSensitiveContext() as context:
        try:
            return await call()
        finally:
            if context in SyncToAsync.context_to_thread_executor:  # the job used its thread
                await sync_to_async(connections.close_all)()


class ProjectTransactions(DjangoTransactions):
    """`@app.task(transaction="django")`, in the database that holds the jobs."""

    def __init__(self) -> None:
        """The alias is not asked yet: settings may not be ready."""

    @property
    def using(self) -> str:  # type: ignore[override]
        """The alias of that database."""
        return database_alias()
