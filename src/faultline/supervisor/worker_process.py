"""One worker process, from its supervisor's side."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from faultline.supervisor.messages import (
    HURRY,
    JobsClaimed,
    ProcessFailure,
    ProcessOrder,
    ProcessReady,
    read_report,
)
from faultline.supervisor.restart_policy import ProcessEnd

UNREAD_BYTES_MAX: Final = 16_384
"""A frozen worker reads nothing. Past this it gets no more wake-ups: it polls when it resumes."""

LAST_WORDS_SECONDS_MAX: Final = 1.0
"""Its socket may outlive it, in a process that a handler forked."""


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes started in this block ignore Ctrl-C until they take it over (see `ParentChannel.take`).

    One during their imports would end them with a traceback. One sent to us is delivered after the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerProcess:
    """A worker process and our end of its socket. The worker's end closes when ours does."""

    def __init__(self, process: "subprocess.Popen[bytes]", ours: socket.socket, order: ProcessOrder) -> None:
        self.process = process
        self.order = order
        self.started_at = time.monotonic()
        self.ready: ProcessReady | None = None
        self._failure: ProcessFailure | None = None
        self._ended = asyncio.Event()
        self._ours = ours
        self._writer: asyncio.StreamWriter | None = None

    @classmethod
    def start(cls, command: Sequence[str], order: ProcessOrder) -> "WorkerProcess":
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

    async def follow(
        self, on_ready: Callable[[ProcessReady], None], on_claimed: Callable[[], None]
    ) -> ProcessEnd:
        """Send its order, receive its messages, and answer how it ended."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._ours)
        self._writer.write(self.order.line())
        receiving = asyncio.create_task(self._receive(reader, on_ready, on_claimed))
        try:
            await self._ended.wait()
            await asyncio.wait([receiving], timeout=LAST_WORDS_SECONDS_MAX)
        finally:
            receiving.cancel()
            self._writer.close()
        return ProcessEnd(self.process.returncode or 0, self.ready is not None, self._failure)

    async def _receive(
        self,
        reader: asyncio.StreamReader,
        on_ready: Callable[[ProcessReady], None],
        on_claimed: Callable[[], None],
    ) -> None:
        with contextlib.suppress(OSError, ValueError, json.JSONDecodeError):
            while line := await reader.readline():
                match read_report(line):
                    case ProcessReady() as ready:
                        self.ready = ready
                        on_ready(ready)
                    case JobsClaimed():
                        on_claimed()
                    case ProcessFailure() as failure:
                        self._failure = failure

    def look(self) -> None:
        """A child process has ended: check whether it was this one."""
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
        """Let it give its jobs back."""
        if self._writer is not None and not self._writer.transport.is_closing():
            self._writer.write(HURRY + b"\n")

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.process.returncode is None:  # otherwise its number may be another process's by now
            self.process.send_signal(number)
