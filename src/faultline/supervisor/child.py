"""One worker process, as its supervisor sees it."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from faultline.supervisor.judge import End
from faultline.supervisor.words import HURRY, Claimed, Failure, Order, Ready, read_report

UNREAD_BYTES_MAX: Final = 16_384
"""A frozen worker reads nothing. Past this it is told no more wake-ups: it will look by itself."""

LAST_WORDS_SECONDS_MAX: Final = 1.0
"""Its socket may outlive it, held by a process that a handler forked."""


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A process that is started in here hears no Ctrl-C of the terminal until it says how (see `Link.take`).

    One that came while it still imports its modules would end it with a traceback. Ours waits, and is heard.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Child:
    """A worker process and our end of the socket to it. Its end closes when ours does."""

    def __init__(self, process: "subprocess.Popen[bytes]", ours: socket.socket, order: Order) -> None:
        self.process = process
        self.order = order
        self.started_at = time.monotonic()
        self.ready: Ready | None = None
        self._failure: Failure | None = None
        self._ended = asyncio.Event()
        self._ours = ours
        self._writer: asyncio.StreamWriter | None = None

    @classmethod
    def start(cls, command: Sequence[str], order: Order) -> "Child":
        """Start a process that takes its order from the descriptor named last on its command line."""
        ours, theirs = socket.socketpair()
        with theirs:
            fd = theirs.fileno()
            try:
                with _interrupts_blocked():
                    process = subprocess.Popen([*command, str(fd)], stdin=subprocess.DEVNULL, pass_fds=[fd])
            except OSError:
                ours.close()
                raise
        return cls(process, ours, order)

    async def follow(self, on_ready: Callable[[Ready], None], on_claimed: Callable[[], None]) -> End:
        """Give it its order, hear what it says, and answer how it ended."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._ours)
        self._writer.write(self.order.line())
        hearing = asyncio.create_task(self._hear(reader, on_ready, on_claimed))
        try:
            await self._ended.wait()
            await asyncio.wait([hearing], timeout=LAST_WORDS_SECONDS_MAX)
        finally:
            hearing.cancel()
            self._writer.close()
        return End(self.process.returncode or 0, self.ready is not None, self._failure)

    async def _hear(
        self,
        reader: asyncio.StreamReader,
        on_ready: Callable[[Ready], None],
        on_claimed: Callable[[], None],
    ) -> None:
        with contextlib.suppress(OSError, ValueError, json.JSONDecodeError):
            while line := await reader.readline():
                match read_report(line):
                    case Ready() as ready:
                        self.ready = ready
                        on_ready(ready)
                    case Claimed():
                        on_claimed()
                    case Failure() as failure:
                        self._failure = failure

    def look(self) -> None:
        """Some process has ended: was it this one?"""
        if self.process.poll() is not None:
            self._ended.set()

    def tell(self, line: bytes) -> None:
        """Pass a wake-up on, unless it has not even read the last ones."""
        if self._writer is None or self._writer.transport.is_closing():
            return
        if self._writer.transport.get_write_buffer_size() < UNREAD_BYTES_MAX:
            self._writer.write(line)

    def stop(self) -> None:
        """Let it finish; one that still starts ends at once."""
        self._send(signal.SIGTERM)

    def hurry(self) -> None:
        """Have it give back what it runs."""
        if self._writer is not None and not self._writer.transport.is_closing():
            self._writer.write(HURRY + b"\n")

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.process.returncode is None:  # else its number may be another's by now
            self.process.send_signal(number)
