"""Wake-ups: hints to idle workers that a queue may have work. Nothing depends on their arrival."""

import heapq
import threading
import time
from collections.abc import Callable
from typing import Final

WINDOW_SECONDS: Final = 0.005
"""At most one hint for a queue in this time, and one more at its end if jobs came meanwhile."""

EARLY_SECONDS: Final = WINDOW_SECONDS / 2
"""A job that is sent so long before the window's end brings its hint along.

Otherwise the hint is often a call of its own: a job that waits for a busy disk comes back behind the end of
the window.
"""

_QUEUES_MAX: Final = 1_000


class WakeupSender:
    """Decides when a hint is due.

    >>> hints = WakeupSender()
    >>> hints.ask("mail"), hints.ask("mail") > 0, hints.ask("mail")
    (0.0, True, None)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._quiet_until: dict[str, float] = {}
        self._coming: set[str] = set()

    def leads(self, queue: str) -> bool:
        """Whether a job about to be enqueued should bring its own hint along, in place of the announced one.

        If the job is refused, the hint is lost, and the leading watchdog tells of the jobs before it.
        """
        with self._lock:
            now = self._clock()
            if self._quiet_until.get(queue, 0.0) - now > EARLY_SECONDS:
                return False
            self._hold_back(queue, now)
            self._coming.discard(queue)
            return True

    def ask(self, queue: str) -> float | None:
        """Zero to send one now, or the time to wait first, or None when one is coming anyway."""
        with self._lock:
            wait = self._wait(queue)
            if wait > 0.0:
                if queue in self._coming:
                    return None
                self._coming.add(queue)
            return wait

    def _wait(self, queue: str) -> float:
        """Zero, and the window begins; or the rest of the window."""
        now = self._clock()
        wait = max(0.0, self._quiet_until.get(queue, 0.0) - now)
        if wait == 0.0:
            self._hold_back(queue, now)
        return wait

    def sending(self, queue: str) -> bool:
        """Whether the announced hint is still wanted. A job enqueued from now on asks for its own."""
        with self._lock:
            if queue not in self._coming:
                return False  # a job took it along
            self._coming.discard(queue)
            self._hold_back(queue, self._clock())
            return True

    def _hold_back(self, queue: str, now: float) -> None:
        if len(self._quiet_until) >= _QUEUES_MAX:
            self._quiet_until = {name: until for name, until in self._quiet_until.items() if until > now}
        self._quiet_until[queue] = now + WINDOW_SECONDS


class DelayedWakeups:
    """A thread that sends the delayed hints; started by the first one."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._due: list[tuple[float, str]] = []
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, queue: str, wait_seconds: float) -> None:
        """Send a hint for this queue after this time."""
        with self._news:
            heapq.heappush(self._due, (time.monotonic() + wait_seconds, queue))
            if self._thread is None or not self._thread.is_alive():  # threads do not survive a fork
                self._thread = threading.Thread(target=self._run, name="faultline-hints", daemon=True)
                self._thread.start()
            self._news.notify()

    def _run(self) -> None:
        while True:
            self._send(self._next())

    def _next(self) -> str:
        with self._news:
            while True:
                wait = self._due[0][0] - time.monotonic() if self._due else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._due)[1]
                self._news.wait(wait)
