"""What tests of the watchdog need: a store whose hold-fire is short, and watchdogs on loops of their own."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from faultline.store import calls
from faultline.store.pool import Store
from faultline.watchdog.watchdog import Watchdog

TICK = timedelta(milliseconds=200)


class Guard:
    """A watchdog on a thread of its own; `leave` is its orderly end."""

    def __init__(self, dsn: str, worker: int, tick: timedelta) -> None:
        self._loop = asyncio.new_event_loop()
        self._dsn, self._worker, self._tick = dsn, worker, tick
        self._task: asyncio.Task[Any] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        async def guard() -> None:
            self._task = asyncio.current_task()
            await Watchdog(self._dsn, self._worker, self._tick).run()

        with (
            asyncio.Runner(loop_factory=lambda: self._loop) as runner,
            contextlib.suppress(asyncio.CancelledError),
        ):
            runner.run(guard())

    def leave(self) -> None:
        if self._task is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    store = Store(database)
    store.run(calls.configure(default_lease=timedelta(milliseconds=500)))
    yield store
    store.close()


@pytest.fixture
def guard(database: str, store: Store) -> Iterator[Callable[..., Guard]]:
    """Starts watchdogs, each in the name of a worker."""
    started: list[Guard] = []

    def start(name: str = "guard", tick: timedelta = TICK) -> Guard:
        worker = store.run(calls.worker_started(name, "host", 1, ["default"], 1, "0"))
        started.append(Guard(database, worker, tick))
        return started[-1]

    yield start
    for one in started:
        one.leave()
