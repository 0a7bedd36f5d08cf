"""The server of `faultline dev`: its folder, and its address for the other commands."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from faultline.embedded.holder import ServerHolder
from faultline.embedded.launch import socket_dsn
from faultline.embedded.server_folder import ServerFolder

FOLDER: Final = Path(".faultline")
DATABASE: Final = "faultline"


def running_dsn(folder: Path = FOLDER) -> str | None:
    """The DSN of the running server of a folder; None when none runs. Starts nothing, makes nothing."""
    with suppress(OSError):
        card = ServerFolder(folder.absolute()).read_card()
        hold = ServerHolder.on(card.control, card.nonce) if card else None
        if card and hold:
            hold.drop()
            return socket_dsn(card, DATABASE)
    return None


def noted_port(folder: Path) -> int | None:
    """The port that the server of a folder had at its first start."""
    with suppress(OSError):
        return ServerFolder(folder.absolute()).read_port()
    return None
