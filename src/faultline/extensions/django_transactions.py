"""`@app.task(transaction="django")`: the handler runs inside `transaction.atomic()`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class DjangoTransactions:
    """Django's own transaction around a plain handler; `using` is the alias of its database.

    Nothing is given to the handler: its models use the connection of its thread. Connections that are too
    old, or broken, are closed before and after each job, as Django does for a request.
    """

    is_async = False

    def __init__(self, using: str = "default") -> None:
        self.using = using

    @contextmanager
    def begin(self) -> Iterator[Any]:
        from django.db import close_old_connections, connections, transaction  # where it is installed

        close_old_connections()
        try:
            with transaction.atomic(using=self.using, durable=True):
                yield connections[self.using]
        finally:
            close_old_connections()
