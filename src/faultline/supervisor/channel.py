"""A worker's end of the socket to its supervisor: wake-ups and orders in, its readiness or failure out."""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from faultline.store.driver.async_connection import Heard
from faultline.supervisor import messages
from faultline.supervisor.messages import (
    JobsClaimed,
    ProcessFailure,
    ProcessOrder,
    ProcessReady,
    Report,
    report,
)

if TYPE_CHECKING:
    from faultline.worker.worker import Worker

LEAVE_SECONDS_MAX: Final = 20.0
"""The time after its grace in which a worker without a supervisor has to end, whatever its handlers do."""

EXIT_ORPHANED: Final = 1
PR_SET_PDEATHSIG: Final = 1


class SupervisorChannel:
    """A supervised worker's replacement for a LISTEN connection, a watchdog, and signals that count.

    SIGTERM may come twice for one stop, from the supervisor and from a service manager that sends it to
    every process it knows. So a signal only means: finish. The order to hurry comes from the supervisor.
    """

    def __init__(self, theirs: socket.socket) -> None:
        self._socket = theirs
        self._unread = b""
        self._heard: Heard = lambda queue: None
        self._told_to_stop = False
        self.order = ProcessOrder.read(self._first_line())

    @classmethod
    def take(cls, fd: int) -> "SupervisorChannel":
        """Take over the descriptor from the supervisor; raises EOFError where it has gone already."""
        _go_with_supervisor()
        # A Ctrl-C reaches this process too, but the supervisor handles it. One since the start is dropped
        # here.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        theirs = socket.socket(fileno=fd)
        theirs.set_inheritable(False)  # otherwise a program that a handler starts would keep it open
        return cls(theirs)

    def _first_line(self) -> bytes:
        while b"\n" not in self._unread:
            if not (came := self._socket.recv(65_536)):
                raise EOFError("the supervisor has gone")
            self._unread += came
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    async def listen(self, heard: Heard, pause: Callable[[], float]) -> None:
        """Call `heard` with each queue that may have work: what LISTEN does for a worker on its own."""
        self._heard = heard
        await asyncio.Event().wait()

    def obey(self, worker: "Worker") -> None:
        """Stop at a signal, or at the end of the supervisor."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, worker)
        # A thread, so that it is heard even while a handler blocks the loop.
        threading.Thread(target=self._read, args=(worker, loop), daemon=True, name="faultline-link").start()

    def report_ready(self, worker: "Worker") -> None:
        tick = worker.config.tick.total_seconds()
        settings = worker.settings
        self._send(ProcessReady(worker.id, settings.dsn, tick, listens=settings.pooler != "transaction"))

    async def report_claimed(self, worker: "Worker") -> None:
        await worker.claimed.wait()
        self._send(JobsClaimed())

    def report_failed(self, kind: str, says: str) -> None:
        self._send(ProcessFailure(kind, says))

    def _send(self, word: Report) -> None:
        with contextlib.suppress(OSError):  # the reading end notices a supervisor that has gone
            self._socket.sendall(report(word))

    def _stop(self, worker: "Worker") -> None:
        if not self._told_to_stop:
            self._told_to_stop = True
            worker.stop()

    def _hurry(self, worker: "Worker") -> None:
        self._stop(worker)
        worker.stop()

    def _read(self, worker: "Worker", loop: asyncio.AbstractEventLoop) -> None:
        """Pass the supervisor's messages to the loop, until it or the loop has gone."""
        try:
            while came := self._socket.recv(65_536):
                *lines, self._unread = (self._unread + came).split(b"\n")
                loop.call_soon_threadsafe(self._take, worker, lines)
        except OSError:
            pass
        except RuntimeError:
            return  # the loop is closed: this process is ending
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._stop, worker)
        time.sleep(worker.config.grace.total_seconds() + LEAVE_SECONDS_MAX)
        os._exit(EXIT_ORPHANED)

    def _take(self, worker: "Worker", lines: list[bytes]) -> None:
        for line in lines:
            match line[:1]:
                case messages.HURRY:
                    self._hurry(worker)
                case messages.DEAF:
                    self._heard(None)
                case _:
                    self._heard(line[1:].decode(errors="replace"))


def _go_with_supervisor() -> None:
    """Before the loop runs, the kernel kills this process at the socket's end; later it sends SIGTERM."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
