"""The shape of a transaction as a type checker sees it: so that `enqueue` does not ask for one."""

from typing import Any, Protocol


class SessionLike(Protocol):
    """A connection or session that can execute, commit and roll back: SQLAlchemy's, psycopg's, ours.

    Read-only properties of any type: methods fit whatever their signatures are, and no driver is imported.
    """

    @property
    def commit(self) -> Any: ...
    @property
    def rollback(self) -> Any: ...
    @property
    def execute(self) -> Any: ...
