"""A holder's end of the socket: while it is open, the server runs."""

import json
import os
import select
import signal
import socket
import time
import weakref
from typing import Any

from faultline.errors import ServerFailed

ANSWER_SECONDS_MAX = 60.0

# A forked child inherits its parent's sockets, and would hold the server after the parent's end.
_open_holds: "weakref.WeakSet[ServerHolder]" = weakref.WeakSet()


class ServerHolder:
    """A hold on a running server. Dropping it, or the end of the process, releases it."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._heard = b""
        self.gone: dict[str, Any] | None = None
        _open_holds.add(self)

    @classmethod
    def on(cls, control: str, nonce: str) -> "ServerHolder | None":
        """Hold the server behind a control socket; None when it is gone, or is another server."""
        peer = socket.socket(socket.AF_UNIX)
        hold = cls(peer)
        try:
            peer.connect(control)
            if hold.greeting() == nonce:
                return hold
        except (OSError, ServerFailed):
            pass
        hold.drop()
        return None

    def greeting(self) -> str:
        return str(self._answer("hello")["nonce"])

    def pid(self) -> int | None:
        pid: int | None = self._ask("pid", ask="pid")["pid"]
        return pid

    def halt(self, how: signal.Signals) -> None:
        self._ask("halted", ask="halt", signal=how)

    def start(self) -> None:
        self._ask("started", ask="start")

    def is_gone(self) -> bool:
        """True once the server ended by itself; `gone` then holds its last message."""
        while self.gone is None and select.select([self._peer], [], [], 0)[0]:
            self._note(self._read())
        return self.gone is not None

    def leave(self) -> None:
        """Release the server; the last holder returns when everything of it is gone."""
        try:
            self._send(ask="leave")
            while self._peer.recv(4096):
                pass
        except OSError:
            pass  # it had gone before us
        self.drop()

    def drop(self) -> None:
        self._peer.close()

    def _ask(self, answer: str, **wish: Any) -> dict[str, Any]:
        try:
            self._send(**wish)
        except OSError as error:
            raise ServerFailed(f"the embedded PostgreSQL has stopped ({error})") from error
        return self._answer(answer)

    def _send(self, **wish: Any) -> None:
        self._peer.settimeout(ANSWER_SECONDS_MAX)
        self._peer.sendall(json.dumps(wish).encode())

    def _answer(self, kind: str) -> dict[str, Any]:
        until = time.monotonic() + ANSWER_SECONDS_MAX
        while time.monotonic() < until and self.gone is None:
            message = self._read()
            if message["say"] == kind:
                return message
            self._note(message)
        raise ServerFailed("the embedded PostgreSQL has stopped")

    def _note(self, message: dict[str, Any]) -> None:
        if message["say"] == "gone":
            self.gone = message

    def _read(self) -> dict[str, Any]:
        """The next message; a closed socket reads as the server's end."""
        self._peer.settimeout(ANSWER_SECONDS_MAX)
        while b"\n" not in self._heard:
            try:
                piece = self._peer.recv(65536)
            except ConnectionError:
                piece = b""
            if not piece:
                return {"say": "gone", "code": None, "log": ""}
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message


def _let_the_parent_hold() -> None:
    for hold in list(_open_holds):
        hold.drop()


os.register_at_fork(after_in_child=_let_the_parent_hold)
