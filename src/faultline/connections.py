"""The connections of users that our calls can join: told apart by whether they are awaited."""

from collections.abc import Coroutine
from typing import Any, Protocol


class PlainConnection(Protocol):
    """A connection or session for plain code: of psycopg, SQLAlchemy or Django.

    >>> import psycopg
    >>> conn: type[PlainConnection] = psycopg.Connection
    """

    def close(self) -> None: ...


class AwaitedConnection(Protocol):
    """A connection or session for async code: of psycopg, asyncpg or SQLAlchemy.

    >>> import psycopg
    >>> conn: type[AwaitedConnection] = psycopg.AsyncConnection
    """

    def close(self) -> Coroutine[Any, Any, Any]: ...
