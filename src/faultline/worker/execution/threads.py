"""Threads for plain handlers: a few, kept for the next job, none of which keeps the process alive."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

Work = Callable[[], Any]


class Threads:
    """Up to `most` threads, each started when it is first needed.

    Daemons, which those of the standard executor are not: at the end of the process it waits for all of its
    threads, and one handler that never returns would keep a worker alive that has long said goodbye.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._work: SimpleQueue[tuple[Future[Any], Work] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._unfinished = 0

    def submit(self, work: Work) -> "Future[Any]":
        """Have a piece of work done by the next free thread."""
        future: Future[Any] = Future()
        with self._lock:
            self._unfinished += 1
            another = self._unfinished > self._started and self._started < self.most
            self._started += another
        self._work.put((future, work))
        if another:
            name = f"faultline-handler-{self._started}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        return future

    def close(self) -> None:
        """Let the threads go home as they become free; nothing waits for them."""
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self) -> None:
        while (given := self._work.get()) is not None:
            future, work = given
            if future.set_running_or_notify_cancel():
                self._do(future, work)
            with self._lock:
                self._unfinished -= 1
            del given, future, work  # an idle thread keeps no job alive

    @staticmethod
    def _do(future: "Future[Any]", work: Work) -> None:
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
