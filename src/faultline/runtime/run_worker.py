"""A worker and its watchdog, side by side in one process: where the two are wired together."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

from faultline.bounds import counted
from faultline.config import Settings, WorkerConfig
from faultline.errors import ConfigError
from faultline.remote.grpc_extra import quiet_grpc, require_grpc
from faultline.remote.server_address import ServerAddress
from faultline.runtime import event_loop
from faultline.runtime.notify import Notifier
from faultline.store.servers.pooler import look_for_pooler
from faultline.supervisor.channel import SupervisorChannel
from faultline.task import Registry
from faultline.watchdog.watchdog import Watchdog
from faultline.worker.backend import Backend
from faultline.worker.options import RunOptions, config_of, tell_left_out, warn_of_queues
from faultline.worker.worker import Worker

log = logging.getLogger("faultline.worker")

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run_to_the_end(tasks: Registry, settings: Settings, options: RunOptions) -> int:
    """What `app.run_worker` does: a worker that has the main thread and the signals of this process."""
    if threading.current_thread() is not threading.main_thread():
        raise ConfigError(
            "run_worker() stops at SIGTERM and Ctrl-C, which Python hands to the main thread alone; in "
            "another thread use `await arun_worker(...)` in an event loop of its own"
        )
    with _signals_restored():
        return event_loop.run(run_in_loop(tasks, settings, options, signals=True))


async def run_in_loop(
    tasks: Registry,
    settings: Settings,
    options: RunOptions,
    *,
    signals: bool = False,
    on_ready: Callable[[Worker], None] | None = None,
) -> int:
    """What `app.arun_worker` does: a worker in the running loop, which a cancellation stops."""
    config = config_of(options, tasks)
    address = ServerAddress.find(options.get("server"))
    warn_of_queues(tasks, config.queues)
    tell_left_out(tasks, config.queues)
    return await work(
        tasks,
        settings,
        config,
        name=options.get("name"),
        until_empty=options.get("until_empty", False),
        stop_after=options.get("stop_after"),
        signals=signals,
        on_ready=on_ready,
        backend=None if address is None else backend_for(address, settings),
    )


def backend_for(address: ServerAddress, settings: Settings) -> Backend:
    """The backend of a worker that works for a server."""
    require_grpc()
    quiet_grpc("ERROR")  # not less: handlers may use gRPC too, and need its errors
    from faultline.remote.remote_backend import RemoteBackend  # an extra, and not light

    return RemoteBackend(address, settings)


@contextlib.contextmanager
def _signals_restored() -> Iterator[None]:
    """The program's own handlers of the signals that a worker takes over, back at its end."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: set outside Python, and not to be restored from here
                signal.signal(number, handler)


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
    link: SupervisorChannel | None = None,
    on_ready: Callable[[Worker], None] | None = None,
    backend: Backend | None = None,
) -> int:
    """Run a worker, with a watchdog beside it, until it is told to stop; answers its exit code.

    With `signals` the process is the worker's own: it obeys SIGTERM and Ctrl-C, and it ends even if a handler
    will not; it reports to systemd, or to a probe's file, that it lives. With a `link` it is one of several:
    its supervisor listens, watches and reports for them all. With a `backend` for a server and no DSN, the
    server listens and watches. A cancellation is a SIGTERM: jobs finish within the grace, a second one gives
    them back at once.
    """
    settings = await look_for_pooler(settings)
    wakes = link.listen if link is not None and settings.dsn is not None else None
    worker = Worker(tasks, settings, config, name, wakes, backend)
    watchdog = watchdog and settings.dsn is not None
    parts: list[Coroutine[Any, Any, None]] = []
    if link is not None:
        link.obey(worker)
        on_ready, watchdog = link.report_ready, False
        parts.append(link.report_claimed(worker))
    elif signals:
        _obey_signals(worker)
        parts.append(Notifier.take().follow(worker.claimed, worker.stopping, worker.status))
    if watchdog:
        parts.append(_guard(worker, settings, config))
    if on_ready:
        parts.append(_announce(worker, on_ready))
    working = asyncio.create_task(worker.run(until_empty=until_empty, stop_after=stop_after))
    beside = [asyncio.create_task(part) for part in parts]
    try:
        code = await _finish(working, worker)
    finally:
        for part in beside:
            part.cancel()
        for part in beside:
            with contextlib.suppress(asyncio.CancelledError):
                await part
    if signals and worker.stuck:
        _leave_at_once(worker)
    return code


async def _finish(working: asyncio.Task[int], worker: Worker) -> int:
    """Wait for the worker's end; cancellations stop it first, and are raised after it has ended."""
    was_cancelled = False
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError:
            was_cancelled = True
            if worker.ready.is_set():
                worker.stop()
            else:  # it holds no job yet, and its database may never answer
                working.cancel()
    if was_cancelled and (working.cancelled() or working.exception() is None):
        raise asyncio.CancelledError
    return working.result()


async def _announce(worker: Worker, on_ready: Callable[[Worker], None]) -> None:
    await worker.ready.wait()
    on_ready(worker)


async def _guard(worker: Worker, settings: Settings, config: WorkerConfig) -> None:
    await worker.ready.wait()
    direct = settings.pooler != "transaction"
    await Watchdog(settings.require_dsn(), worker.id, config.tick, prepare=direct).run()


def _obey_signals(worker: Worker) -> None:
    """The first SIGTERM or Ctrl-C lets jobs finish, the second gives them back at once."""
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, worker.stop)


def _leave_at_once(worker: Worker) -> None:
    """Python would wait for coroutines that will not be cancelled; nothing is left to wait for."""
    log.warning("%s would not stop; leaving without them", counted(worker.stuck, "handler"))
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(worker.exit_code)
