"""A service manager for tests: a datagram socket that hears what processes say, and which one said it."""

import contextlib
import secrets
import select
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PATIENCE = 60.0


class Word(NamedTuple):
    """One datagram: which process sent it, and what it said."""

    pid: int
    said: dict[str, str]


class Manager:
    """What systemd is to a service, as far as the service can see."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.heard: list[Word] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.setblocking(False)

    @classmethod
    @contextlib.contextmanager
    def at(cls, folder: Path | None = None) -> Iterator["Manager"]:
        """A socket in a folder, or one without a path."""
        name = f"faultline-{secrets.token_hex(6)}"
        manager = cls(f"@{name}" if folder is None else str(folder / name))
        yield manager
        manager._socket.close()

    def hear(self) -> list[Word]:
        """All it was told so far."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data, extra, _, _ = self._socket.recvmsg(4096, socket.CMSG_SPACE(12))
                pid, _, _ = struct.unpack("3i", extra[0][2])
                said = dict(line.split("=", 1) for line in data.decode().splitlines())
                self.heard.append(Word(pid, said))
        return self.heard

    def wait_for(self, word: str, more_than: int = 0) -> Word:
        """The first word of a kind, as soon as more than so many of it have come."""
        give_up_at = time.monotonic() + PATIENCE
        while len(found := [told for told in self.hear() if word in told.said]) <= more_than:
            assert time.monotonic() < give_up_at, f"no {word} came; heard {self.heard}"
            select.select([self._socket], [], [], 0.1)
        return found[0]

    def count(self, word: str) -> int:
        return sum(word in told.said for told in self.hear())
