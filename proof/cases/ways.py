"""Ways to the server that misbehave in more ways than being cut: held, one-way, slow, and full of garbage."""

import select
import socket
import threading
import time
from collections.abc import Iterator

from tests.support_proxy import Proxy

BYTES_MAX = 1 << 16
HELD_SECONDS_MAX = 60.0


class HoldingWay(Proxy):
    """Holds a statement, and everything behind it, until it is released."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self._word = b""
        self.held = threading.Event()
        self.let_go = threading.Event()

    def hold_before(self, statement: str) -> None:
        self._word = statement.encode()

    def _pump(self, near: socket.socket, far: socket.socket) -> None:
        for source, data in _both(near, far):
            if source is near and self._word and self._word in data:
                self._word = b""
                self.held.set()
                self.let_go.wait(HELD_SECONDS_MAX)
            (far if source is near else near).sendall(data)


class OneWay(Proxy):
    """Swallows what goes one way and carries the other: `mute` the worker's words, `deaf` the server's."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.mute = False
        self.deaf = False

    def _pump(self, near: socket.socket, far: socket.socket) -> None:
        for source, data in _both(near, far):
            if source is near and not self.mute:
                far.sendall(data)
            if source is far and not self.deaf:
                near.sendall(data)


class SlowWay(Proxy):
    """Carries everything, late."""

    def __init__(self, dsn: str, seconds: float) -> None:
        super().__init__(dsn)
        self._seconds = seconds

    def _pump(self, near: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(target=self._one_way, args=[far, near], daemon=True)
        back.start()
        self._one_way(near, far)

    def _one_way(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(BYTES_MAX):
                time.sleep(self._seconds)
                target.sendall(data)
        except OSError:
            return


class GarblingWay(Proxy):
    """Carries a statement to the server, and returns another reply."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self._word = b""
        self._reply = b""
        self.garbled = 0

    def garble(self, statement: str, reply: bytes) -> None:
        """Once: the reply to this statement is `reply`, and then the line goes dead."""
        self._word, self._reply = statement.encode(), reply

    def _pump(self, near: socket.socket, far: socket.socket) -> None:
        for source, data in _both(near, far):
            if source is near and self._word and self._word in data:
                self._word = b""
                self.garbled += 1
                far.sendall(data)
                self._await_ready(far)
                near.sendall(self._reply)
                return
            (far if source is near else near).sendall(data)


def _both(near: socket.socket, far: socket.socket) -> Iterator[tuple[socket.socket, bytes]]:
    """What comes from either side, until one of them ends."""
    while True:
        for source in select.select([near, far], [], [])[0]:
            data = source.recv(BYTES_MAX)
            if not data:
                return
            yield source, data
