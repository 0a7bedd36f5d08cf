"""Tell whoever started us how we are: systemd over its socket, a container's probes by a file.

Without NOTIFY_SOCKET and FAULTLINE_ALIVE_FILE nothing is said and nothing is different.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SIGN_EVERY: Final = 5.0
"""Seconds between signs of life, or less where systemd wants them sooner."""

SEND_SECONDS_MAX: Final = 0.5
"""A service manager that reads nothing must not hold up the loop whose turning is being told."""


@dataclass(frozen=True, slots=True)
class Notifier:
    """Says READY, then that the loop turns, then STOPPING.

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
        """What the environment asks for, and out of it: it is meant for us, not for what handlers start."""
        address = environment.pop("NOTIFY_SOCKET", "")
        microseconds = environment.pop("WATCHDOG_USEC", "")
        ours = environment.pop("WATCHDOG_PID", "") in ("", str(os.getpid()))
        file = environment.pop("FAULTLINE_ALIVE_FILE", "")
        # At half the time systemd allows: one sign may come late, and the next is still in time.
        allowed = int(microseconds) / 2e6 if microseconds.isdigit() and ours else SIGN_EVERY
        return cls(_spelled(address), min(max(allowed, 0.01), SIGN_EVERY), Path(file) if file else None)

    @property
    def wanted(self) -> bool:
        """Whether there is anybody to tell."""
        return self.address is not None or self.file is not None

    def tell(self, *words: str) -> None:
        """Send words such as READY=1; nobody there to hear them is no trouble of ours."""
        if self.address is not None:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as way:
                way.settimeout(SEND_SECONDS_MAX)
                way.sendto("\n".join(words).encode(), self.address)

    async def follow(self, ready: asyncio.Event, stopping: asyncio.Event, status: Callable[[], str]) -> None:
        """Tell a whole life, from the loop itself; runs until it is cancelled.

        >>> async def live() -> None:
        ...     ready, stopping = asyncio.Event(), asyncio.Event()
        ...     await Notifier().follow(ready, stopping, lambda: "serving")  # nobody to tell: it is over
        >>> asyncio.run(live())
        """
        if not self.wanted:
            return
        await ready.wait()
        try:
            self.tell("READY=1", f"STATUS={status()}")
            await self._live(stopping, status)
            self.tell("STOPPING=1", "STATUS=stopping: " + status())
            # A drain takes its time, and whoever looks meanwhile must not take it for dead.
            await self._live(asyncio.Event(), lambda: "stopping: " + status())
        finally:
            if self.file is not None:
                with contextlib.suppress(OSError):
                    self.file.unlink()

    async def _live(self, until: asyncio.Event, status: Callable[[], str]) -> None:
        while not until.is_set():
            self.tell("WATCHDOG=1", f"STATUS={status()}")
            if self.file is not None:
                with contextlib.suppress(OSError):  # a full disk is no reason to stop working
                    self.file.touch()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.sign_every):
                    await until.wait()


@contextlib.asynccontextmanager
async def telling(
    ready: asyncio.Event, stopping: asyncio.Event, status: Callable[[], str]
) -> AsyncIterator[None]:
    """Tell of this process's life for as long as the block lasts: once, and in a process of its own."""
    told = asyncio.create_task(Notifier.take().follow(ready, stopping, status))
    try:
        yield
    finally:
        told.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await told


def _spelled(address: str) -> str | None:
    """As the kernel wants it: a path, or a name of its own without one; anything else we do not speak."""
    if address.startswith("@"):
        return "\0" + address[1:]
    return address if address.startswith("/") else None
