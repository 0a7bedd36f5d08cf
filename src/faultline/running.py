"""A worker and its watchdog, side by side in one process: where the two are wired together."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from faultline.config import Settings, WorkerConfig
from faultline.notify import Notifier
from faultline.store.pooler import look_for_pooler
from faultline.supervisor.link import Link
from faultline.task import Registry
from faultline.watchdog.watchdog import Watchdog
from faultline.worker.doors import Doors
from faultline.worker.worker import Worker

log = logging.getLogger("faultline.worker")


async def work(
    tasks: Registry,
    settings: Settings,
    config: WorkerConfig,
    *,
    name: str | None = None,
    until_empty: bool = False,
    stop_after: int | None = None,
    signals: bool = False,
    watchdog: bool = True,
    link: Link | None = None,
    on_ready: Callable[[Worker], None] | None = None,
    doors: Doors | None = None,
) -> int:
    """Run a worker, with a watchdog beside it, until it is told to stop; answers its exit code.

    With `signals` the process is the worker's own: it obeys SIGTERM and Ctrl-C, and it ends even if a handler
    will not; and it tells systemd, or whoever looks at its file, that it lives. With a `link` it is one of
    several: its supervisor listens, watches and tells for them all. With `doors` to a server and no DSN, the
    server listens and watches.
    """
    settings = await look_for_pooler(settings)
    wakes = link.listen if link is not None and settings.dsn is not None else None
    worker = Worker(tasks, settings, config, name, wakes, doors)
    watchdog = watchdog and settings.dsn is not None
    parts: list[Coroutine[Any, Any, None]] = []
    if link is not None:
        link.obey(worker)
        on_ready, watchdog = link.say_ready, False
        parts.append(link.say_claimed(worker))
    elif signals:
        _obey_signals(worker)
        parts.append(Notifier.take().follow(worker.claimed, worker.stopping, worker.status))
    if watchdog:
        parts.append(_guard(worker, settings, config))
    working = asyncio.create_task(worker.run(until_empty=until_empty, stop_after=stop_after))
    beside = [asyncio.create_task(part) for part in parts]
    if on_ready:
        ready = asyncio.create_task(worker.ready.wait())
        await asyncio.wait([ready, working], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if worker.ready.is_set():
            on_ready(worker)
    try:
        code = await working
    finally:
        for part in beside:
            part.cancel()
        for part in beside:
            with contextlib.suppress(asyncio.CancelledError):
                await part
    if signals and worker.stuck:
        _leave_at_once(worker)
    return code


async def _guard(worker: Worker, settings: Settings, config: WorkerConfig) -> None:
    await worker.ready.wait()
    direct = settings.pooler != "transaction"
    await Watchdog(settings.require_dsn(), worker.id, config.tick, prepare=direct).run()


def _obey_signals(worker: Worker) -> None:
    """The first SIGTERM or Ctrl-C lets jobs finish, the second gives them back at once."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)


def _leave_at_once(worker: Worker) -> None:
    """Python would wait for coroutines that will not be cancelled; nothing is left to wait for."""
    log.warning("%d handlers would not stop; leaving without them", worker.stuck)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(worker.exit_code)
