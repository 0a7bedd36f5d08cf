"""The folder of an embedded server: its files, its lock, and the way to reach its server."""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from faultline.errors import ServerFailed

TURN_SECONDS_MAX = 180.0
POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Card:
    """The way to reach the running server of a folder. The nonce proves that the answer comes from it."""

    nonce: str
    socket_folder: str
    port: int
    version: str
    binaries: str

    @property
    def control(self) -> str:
        return f"{self.socket_folder}/control"


@dataclass(frozen=True)
class ServerFolder:
    """A folder with a server's data and our notes beside it."""

    folder: Path

    @classmethod
    def private(cls) -> "ServerFolder":
        return cls(_opened_up(Path(tempfile.mkdtemp(prefix="faultline-"))))

    @classmethod
    def at(cls, folder: Path) -> "ServerFolder":
        folder = folder.absolute()
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _opened_up(folder)
        return cls(folder)

    @property
    def data(self) -> Path:
        return self.folder / "pg"

    @property
    def draft(self) -> Path:
        """The place where a data folder is initialised, so that `data` is there whole or not at all."""
        return self.folder / "pg.draft"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Lock the folder: one process at a time looks for the server, starts it, or deletes the folder."""
        until = time.monotonic() + TURN_SECONDS_MAX
        while True:
            ServerFolder.at(self.folder)
            handle = self._open("lock")
            try:
                if _lock_until(handle, until) and self._still_there(handle):
                    yield
                    return
            finally:
                os.close(handle)
            if time.monotonic() > until:
                raise ServerFailed(
                    f"another process has held {self.folder}/lock for {TURN_SECONDS_MAX:.0f} s"
                )

    def _still_there(self, handle: int) -> bool:
        """False when the folder was deleted during the wait: then our lock is on a deleted file."""
        try:
            return os.path.samestat(os.fstat(handle), (self.folder / "lock").stat())
        except FileNotFoundError:
            return False

    def take_life(self, within_seconds: float) -> int | None:
        """The lock that every process of a server inherits, ours once all of them have gone; else None.

        It shows that a server is gone. Process ids show less: they are used again for other processes.
        """
        handle = self._open("alive")
        if _lock_until(handle, time.monotonic() + within_seconds):
            return handle
        os.close(handle)
        return None

    def read_card(self) -> Card | None:
        try:
            return Card(**json.loads((self.folder / "server.json").read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def write_card(self, card: Card) -> None:
        self._write("server.json", json.dumps(asdict(card)))

    def drop_card(self) -> None:
        (self.folder / "server.json").unlink(missing_ok=True)

    def read_port(self) -> int | None:
        """The port of this folder's servers, once one has run here."""
        with suppress(FileNotFoundError, ValueError):
            port = int((self.folder / "port").read_text())
            return port if 0 < port < 65_536 else None
        return None

    def write_port(self, port: int) -> None:
        self._write("port", f"{port}\n")

    def read_password(self) -> str | None:
        with suppress(FileNotFoundError):
            return (self.folder / "password").read_text()
        return None

    def write_password(self, password: str) -> None:
        self._write("password", password)

    def _write(self, name: str, text: str) -> None:
        """Replace a file whole, readable by us alone: a reader gets the old one or the new one."""
        handle, draft = tempfile.mkstemp(prefix=f".{name}-", dir=self.folder)
        with os.fdopen(handle, "w") as file:
            self._hand_over(handle)
            file.write(text)
        Path(draft).replace(self.folder / name)

    def open_log(self) -> BinaryIO:
        return os.fdopen(self._open("log", os.O_APPEND), "ab")

    def _open(self, name: str, how: int = 0) -> int:
        handle = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | how, 0o600)
        self._hand_over(handle)
        return handle

    def _hand_over(self, handle: int) -> None:
        """Give files that root wrote to the folder's owner, so that one `sudo` does not lock its user out."""
        if os.geteuid() == 0:
            owner = self.folder.stat()
            os.fchown(handle, owner.st_uid, owner.st_gid)


def _opened_up(folder: Path) -> Path:
    """Let the account of root's server enter a folder that we made; only we may list it."""
    if os.geteuid() == 0:
        folder.chmod(0o711)
    return folder


def _lock_until(handle: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(POLL_SECONDS)
        else:
            return True
