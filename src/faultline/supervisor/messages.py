"""The messages of a supervisor and its worker processes: a line each, over a socket.

A worker says once that it is ready, or why it failed, and once that its first claim was answered. The
supervisor says which queue may have work, that no wake-up can be heard, and that it is time to hurry.
The end of either needs no message: the kernel closes its socket.
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
class ProcessOrder:
    """The supervisor's first line: facts that a command line should not show, and the process's number."""

    number: int
    dsn: str | None

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> "ProcessOrder":
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True)
class ProcessReady:
    """A worker has begun: the address of its database, and the facts that a watchdog needs."""

    worker: int
    dsn: str | None
    """None where it works over a server, which listens and watches."""
    tick: float
    listens: bool


@dataclass(frozen=True, slots=True)
class JobsClaimed:
    """A worker's first claim was answered: it works."""


@dataclass(frozen=True, slots=True)
class ProcessFailure:
    """The reason why a worker failed, in the words of its error."""

    kind: str
    says: str

    def error(self) -> FaultlineError:
        """The error as the worker raised it; one that is not ours keeps its words.

        >>> ProcessFailure("SchemaMissing", "run `faultline migrate`").error()
        SchemaMissing('run `faultline migrate`')
        """
        kind = getattr(errors, self.kind, FaultlineError)
        plain = isinstance(kind, type) and issubclass(kind, FaultlineError) and "__init__" not in vars(kind)
        return kind(self.says) if plain else FaultlineError(self.says)


Report = ProcessReady | JobsClaimed | ProcessFailure


def report(word: Report) -> bytes:
    """A worker's message as a line.

    >>> read_report(report(ProcessFailure("ConfigError", "no such module")))
    ProcessFailure(kind='ConfigError', says='no such module')
    """
    return json.dumps({"word": type(word).__name__, **asdict(word)}).encode() + b"\n"


def read_report(line: bytes) -> Report:
    """The message in a worker's line."""
    facts = json.loads(line)
    match facts.pop("word"):
        case "ProcessReady":
            return ProcessReady(**facts)
        case "JobsClaimed":
            return JobsClaimed()
        case _:
            return ProcessFailure(**facts)


def wake(queue: str | None) -> bytes:
    """A queue may have work, or no wake-up can be heard now.

    NOTIFY accepts any text, so an invalid queue name means all queues.

    >>> wake("mail"), wake("two\\nlines"), wake(None)
    (b'wmail\\n', b'w\\n', b'd\\n')
    """
    if queue is None:
        return DEAF + b"\n"
    name = queue.encode(errors="replace")
    return WAKE + (name if len(name) <= QUEUE_BYTES_MAX and b"\n" not in name else b"") + b"\n"
