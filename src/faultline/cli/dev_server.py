"""The server of `faultline dev`: where it lives, and how the other commands find it."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from faultline.embedded.hold import Hold
from faultline.embedded.launch import socket_dsn
from faultline.embedded.place import Place

FOLDER: Final = Path(".faultline")
DATABASE: Final = "faultline"


def running_dsn(folder: Path = FOLDER) -> str | None:
    """How to reach the server that runs in a folder; None when none does. Starts nothing, makes nothing."""
    with suppress(OSError):
        card = Place(folder.absolute()).read_card()
        hold = Hold.on(card.control, card.nonce) if card else None
        if card and hold:
            hold.drop()
            return socket_dsn(card, DATABASE)
    return None


def noted_port(folder: Path) -> int | None:
    """The port that the server of a folder had at its first start."""
    with suppress(OSError):
        return Place(folder.absolute()).read_port()
    return None
