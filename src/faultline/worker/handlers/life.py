"""The begin and the end of a process that runs handlers: its hooks, and its resources."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Final

from faultline.errors import ConfigError
from faultline.extensions import Hooks
from faultline.telemetry import describe_error
from faultline.worker.handlers.handler_calls import HandlerCalls
from faultline.worker.handlers.opening import CLOSE_MAX

log = logging.getLogger("faultline.worker")

STARTUP_MAX: Final = 60.0
SHUTDOWN_MAX: Final = 10.0
"""Seconds for one hook: a worker that cannot start says so, one that stops goes on."""


async def call_hook(hook: Callable[..., Any], *args: Any, seconds: float) -> None:
    """Call one hook; a plain one in a thread of its own, which is left alone past its time."""
    async with asyncio.timeout(seconds):
        if inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(type(hook).__call__):
            await hook(*args)
        else:
            await in_daemon_thread(lambda: hook(*args))


async def in_daemon_thread(work: Callable[[], Any]) -> Any:
    """As `asyncio.to_thread`, but a thread that hangs does not keep the process from its end."""
    loop, context = asyncio.get_running_loop(), copy_context()
    answer: asyncio.Future[Any] = loop.create_future()

    def done(value: Any, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))

    def run() -> None:
        value, failure = None, None
        try:
            value = context.run(work)
        except BaseException as error:
            failure = error
        try:
            loop.call_soon_threadsafe(done, value, failure)
        except RuntimeError:  # the loop has ended
            log.debug("a hook ended after its worker")

    threading.Thread(target=run, name="faultline-hook", daemon=True).start()
    return await answer


async def start(hooks: Hooks) -> None:
    """Call the hooks of the start, in their order; one that fails keeps the worker from starting."""
    for hook in hooks.of("startup"):
        try:
            await call_hook(hook, seconds=STARTUP_MAX)
        except Exception as error:
            what = f"took over {STARTUP_MAX:.0f} s" if isinstance(error, TimeoutError) else repr(error)
            raise ConfigError(f"startup hook {_named(hook)} failed, so no job was claimed: {what}") from error


async def stop(hooks: Hooks, calls: HandlerCalls) -> None:
    """Close the resources, then call the hooks of the end, the last registered first; errors are logged."""
    await calls.aclose()
    try:
        async with asyncio.timeout(CLOSE_MAX):
            await in_daemon_thread(calls.close)
    except TimeoutError:
        log.warning("the resources of plain handlers were not closed within %.0f s", CLOSE_MAX)
    for hook in reversed(hooks.of("shutdown")):
        try:
            await call_hook(hook, seconds=SHUTDOWN_MAX)
        except Exception as error:
            log.error("shutdown hook %s failed: %s", _named(hook), describe_error(error))


def _named(hook: Callable[..., Any]) -> str:
    return f"{getattr(hook, '__module__', '?')}.{getattr(hook, '__qualname__', hook)}"
