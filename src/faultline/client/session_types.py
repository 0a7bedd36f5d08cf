"""The shapes of a transaction as a type checker sees them: so that `enqueue` does not ask for one.

Read-only properties of any type: methods fit whatever their signatures are, and no driver is imported.
"""

from typing import Any, Protocol


class SessionLike(Protocol):
    """SQLAlchemy's sessions, psycopg's connections, and ours."""

    @property
    def commit(self) -> Any: ...
    @property
    def rollback(self) -> Any: ...
    @property
    def execute(self) -> Any: ...


class ConnectionLike(Protocol):
    """asyncpg's connections, which have no commit of their own."""

    @property
    def is_in_transaction(self) -> Any: ...
    @property
    def transaction(self) -> Any: ...
    @property
    def execute(self) -> Any: ...
