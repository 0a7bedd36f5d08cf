"""Barriers for processes that know no database: the drill opens them with a line on their standard input.

Which of them are closed is said in a process's order; what is not closed can be passed by anybody.
"""

import threading
from collections.abc import Iterable
from typing import Final

from faultline.errors import FaultlineError

WAIT_SECONDS_MAX: Final = 60.0


class Gates:
    """The closed barriers of one process."""

    def __init__(self, closed: Iterable[str] = ()) -> None:
        self._closed = {name: threading.Event() for name in closed}

    def open(self, name: str) -> None:
        """Let everybody pass."""
        if gate := self._closed.get(name):
            gate.set()

    def pass_through(self, name: str) -> None:
        """Wait until it is open."""
        gate = self._closed.get(name)
        if gate is not None and not gate.wait(WAIT_SECONDS_MAX):
            raise FaultlineError(f"nobody opened {name!r} in {WAIT_SECONDS_MAX:.0f} s")


def word(name: str) -> bytes:
    """What the drill says to open one.

    >>> word("B may start")
    b'open B may start\\n'
    """
    return f"open {name}\n".encode()


def heard(gates: Gates, line: bytes) -> None:
    """Take a line that the drill said.

    >>> gates = Gates(["B may start"])
    >>> heard(gates, word("B may start"))
    >>> gates.pass_through("B may start")
    """
    verb, _, name = line.decode(errors="replace").rstrip("\n").partition(" ")
    if verb == "open":
        gates.open(name)
