"""Barriers for processes that know no database: the drill opens them with a line on their standard input.

A process's order says which of them are closed; the others let every process pass.
"""

import threading
from collections.abc import Iterable
from typing import Final

from faultline.errors import FaultlineError

WAIT_SECONDS_MAX: Final = 60.0


class StdinBarriers:
    """The closed barriers of one process."""

    def __init__(self, closed: Iterable[str] = ()) -> None:
        self._closed = {name: threading.Event() for name in closed}

    def open(self, name: str) -> None:
        """Open it for every process."""
        if gate := self._closed.get(name):
            gate.set()

    def pass_through(self, name: str) -> None:
        """Wait until it is open."""
        gate = self._closed.get(name)
        if gate is not None and not gate.wait(WAIT_SECONDS_MAX):
            raise FaultlineError(f"{name!r} was not opened in {WAIT_SECONDS_MAX:.0f} s")


def word(name: str) -> bytes:
    """What the drill says to open one.

    >>> word("B may start")
    b'open B may start\\n'
    """
    return f"open {name}\n".encode()


def heard(gates: StdinBarriers, line: bytes) -> None:
    """Take a line that the drill said.

    >>> gates = StdinBarriers(["B may start"])
    >>> heard(gates, word("B may start"))
    >>> gates.pass_through("B may start")
    """
    verb, _, name = line.decode(errors="replace").rstrip("\n").partition(" ")
    if verb == "open":
        gates.open(name)
