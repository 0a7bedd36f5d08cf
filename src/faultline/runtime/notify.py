"""Reports of the process's state: to systemd over its socket, to a container's probes by a file.

Without NOTIFY_SOCKET and FAULTLINE_ALIVE_FILE it does nothing.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

log: Final = logging.getLogger("faultline.notify")

SIGN_EVERY: Final = 5.0
"""Seconds between signs of life, or less where systemd wants them sooner."""

SEND_SECONDS_MAX: Final = 0.5
"""A service manager that reads nothing must not block the loop that it watches."""


@dataclass(frozen=True, slots=True)
class Notifier:
    """Sends READY, then a sign with each turn of the loop, then STOPPING.

    >>> Notifier.take({"NOTIFY_SOCKET": "@manager", "WATCHDOG_USEC": "4000000"})
    Notifier(address='\\x00manager', sign_every=2.0, file=None)
    >>> Notifier.take({}).wanted
    False
    """

    address: str | None = None
    sign_every: float = SIGN_EVERY
    file: Path | None = None

    @classmethod
    def take(cls, environment: MutableMapping[str, str] = os.environ) -> "Notifier":
        """The settings of the environment, removed from it: they are not for the processes of handlers."""
        address = environment.pop("NOTIFY_SOCKET", "")
        microseconds = environment.pop("WATCHDOG_USEC", "")
        ours = environment.pop("WATCHDOG_PID", "") in ("", str(os.getpid()))
        file = environment.pop("FAULTLINE_ALIVE_FILE", "")
        # At half the time that systemd allows: one sign may come late, and the next is still in time.
        allowed = int(microseconds) / 2e6 if microseconds.isdigit() and ours else SIGN_EVERY
        return cls(_spelled(address), min(max(allowed, 0.01), SIGN_EVERY), Path(file) if file else None)

    @property
    def wanted(self) -> bool:
        """Whether there is a socket or a file to write to."""
        return self.address is not None or self.file is not None

    def tell(self, *words: str) -> None:
        """Send a state such as READY=1; a failed send is ignored."""
        if self.address is not None:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as way:
                way.settimeout(SEND_SECONDS_MAX)
                way.sendto("\n".join(words).encode(), self.address)

    async def follow(self, ready: asyncio.Event, stopping: asyncio.Event, status: Callable[[], str]) -> None:
        """Report the whole life of the process, from the loop itself; runs until it is cancelled.

        >>> async def live() -> None:
        ...     ready, stopping = asyncio.Event(), asyncio.Event()
        ...     await Notifier().follow(ready, stopping, lambda: "serving")  # no socket, no file: it returns
        >>> asyncio.run(live())
        """
        if not self.wanted:
            return
        await ready.wait()
        sign = Sign(self.file)
        try:
            self.tell("READY=1", f"STATUS={status()}")
            await self._live(stopping, status, sign)
            self.tell("STOPPING=1", "STATUS=stopping: " + status())
            # A drain takes its time, and a probe in the meantime must not take the process for dead.
            await self._live(asyncio.Event(), lambda: "stopping: " + status(), sign)
        finally:
            sign.remove()

    async def _live(self, until: asyncio.Event, status: Callable[[], str], sign: "Sign") -> None:
        while not until.is_set():
            self.tell("WATCHDOG=1", f"STATUS={status()}")
            sign.touch()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.sign_every):
                    await until.wait()


class Sign:
    """Touch the file whose time is the sign of life; one that cannot be written is warned of once.

    >>> Sign(None).touch()  # none was asked for
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._was_warned = False

    def touch(self) -> None:
        """Touch it now. A full disk is no reason to stop working."""
        if self._file is None:
            return
        try:
            self._file.touch()
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._was_warned:
            self._was_warned = True
            log.warning(
                "FAULTLINE_ALIVE_FILE cannot be written: %s (%s); work goes on, but a probe that looks at it "
                "finds no sign of life: name a file in a folder that exists and can be written to",
                self._file, error.strerror or error,
            )  # fmt: skip

    def remove(self) -> None:
        """Remove the sign of life."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()


@contextlib.asynccontextmanager
async def telling(
    ready: asyncio.Event, stopping: asyncio.Event, status: Callable[[], str]
) -> AsyncIterator[None]:
    """Report this process's life for as long as the block lasts: once, and in a process of its own."""
    told = asyncio.create_task(Notifier.take().follow(ready, stopping, status))
    try:
        yield
    finally:
        told.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await told


def _spelled(address: str) -> str | None:
    """An address for the kernel: a path, or an abstract name; other forms are not supported."""
    if address.startswith("@"):
        return "\0" + address[1:]
    return address if address.startswith("/") else None
