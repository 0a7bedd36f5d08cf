"""What a supervisor and its worker processes say to each other: a line each, over a socket.

A worker says once that it is ready, or why it could not be, and once that its first claim was answered. The
supervisor says which queue may have work, that nothing can be heard now, and that it is time to hurry. That
one of them has gone needs no word: the kernel closes its end.
"""

import json
from dataclasses import asdict, dataclass
from typing import Final

from faultline import errors
from faultline.errors import FaultlineError

WAKE: Final = b"w"
DEAF: Final = b"d"
HURRY: Final = b"h"
QUEUE_BYTES_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Order:
    """The supervisor's first line: what a command line should not show, and which of the group one is."""

    number: int
    dsn: str | None

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> "Order":
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has begun: where its database is, and what a watchdog for it needs to know."""

    worker: int
    dsn: str | None
    """None where it works over a server, which listens and watches."""
    tick: float
    listens: bool


@dataclass(frozen=True, slots=True)
class Claimed:
    """A worker's first claim was answered: it works."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a worker could not begin, or what it died of, in the words of its error."""

    kind: str
    says: str

    def error(self) -> FaultlineError:
        """The error as the worker raised it; one that is not ours keeps its words.

        >>> Failure("SchemaMissing", "run `faultline migrate`").error()
        SchemaMissing('run `faultline migrate`')
        """
        kind = getattr(errors, self.kind, FaultlineError)
        plain = isinstance(kind, type) and issubclass(kind, FaultlineError) and "__init__" not in vars(kind)
        return kind(self.says) if plain else FaultlineError(self.says)


Report = Ready | Claimed | Failure


def report(word: Report) -> bytes:
    """A worker's word as a line.

    >>> read_report(report(Failure("ConfigError", "no such module")))
    Failure(kind='ConfigError', says='no such module')
    """
    return json.dumps({"word": type(word).__name__, **asdict(word)}).encode() + b"\n"


def read_report(line: bytes) -> Report:
    """What a worker said."""
    facts = json.loads(line)
    match facts.pop("word"):
        case "Ready":
            return Ready(**facts)
        case "Claimed":
            return Claimed()
        case _:
            return Failure(**facts)


def wake(queue: str | None) -> bytes:
    """That a queue may have work, or that nothing can be heard now.

    Anybody may notify with any text, so what is no queue means them all.

    >>> wake("mail"), wake("two\\nlines"), wake(None)
    (b'wmail\\n', b'w\\n', b'd\\n')
    """
    if queue is None:
        return DEAF + b"\n"
    name = queue.encode(errors="replace")
    return WAKE + (name if len(name) <= QUEUE_BYTES_MAX and b"\n" not in name else b"") + b"\n"
