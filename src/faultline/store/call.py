"""Call: one use of one database function, as a value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar

from faultline.store.driver.arrays import ArrayParam

T = TypeVar("T")
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """The function, its arguments and the reader of the reply; nothing is sent yet.

    >>> Call("get_job", {"job_id": 7}, read=len).sql
    'select * from faultline.get_job(job_id => %(job_id)s)'
    """

    name: str
    args: dict[str, Any] = field(repr=False)
    """Not in the repr: a claim id is among them, and calls end up in logs and tracebacks."""
    read: Callable[[list[Row]], T]
    raw_moments: bool = False
    """A timestamp stays the server's count of microseconds since 2000: making a datetime takes longer than
    reading the rest of a job."""
    raw_documents: bool = False
    """A jsonb stays text: a mebibyte of it can become half a million objects."""

    @property
    def sql(self) -> str:
        return _render(self.name, self._form())

    @property
    def numbered(self) -> str:
        """The same with numbers in place of names, as the server needs it.

        >>> Call("get_job", {"job_id": 7}, read=len).numbered
        'select * from faultline.get_job(job_id => $1)'
        """
        return _number(self.name, self._form())

    @property
    def scalar(self) -> str:
        """The same for a function that returns one value: the server plans it faster.

        >>> Call("get_job", {"job_id": 7}, read=len).scalar
        'select faultline.get_job(job_id => $1)'
        """
        return self.numbered.replace("* from ", "", 1)

    def _form(self) -> tuple[tuple[str, str | None], ...]:
        return tuple(
            [(name, value.of if type(value) is ArrayParam else None) for name, value in self.args.items()]
        )


@lru_cache(maxsize=512)
def _render(name: str, args: tuple[tuple[str, str | None], ...]) -> str:
    """The only line of SQL in the Python code."""
    named = ", ".join(
        f"{arg} => %({arg})s" if of is None else f"{arg} => %({arg})b::{of}[]" for arg, of in args
    )
    return f"select * from faultline.{name}({named})"


@lru_cache(maxsize=512)
def _number(name: str, args: tuple[tuple[str, str | None], ...]) -> str:
    numbered = ", ".join(
        f"{arg} => ${number}" if of is None else f"{arg} => ${number}::{of}[]"
        for number, (arg, of) in enumerate(args, start=1)
    )
    return f"select * from faultline.{name}({numbered})"
