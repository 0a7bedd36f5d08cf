"""The hooks on outcomes: told after an attempt was recorded, beside the work, and never in its way."""

import asyncio
import logging
from typing import Final

from faultline.extensions import Hooks, JobEvent
from faultline.outcome import Crashed, Dead, Done, Failed
from faultline.telemetry import describe_error
from faultline.telemetry.rate_limited import RateLimited
from faultline.worker.attempt import Attempt, StopReason
from faultline.worker.handlers.life import call_hook
from faultline.worker.stats import how_ended

log = logging.getLogger("faultline.worker")

WAITING_MAX: Final = 1_000
"""Events that wait for slow hooks; past these they are left out, and that is logged."""

HOOK_MAX: Final = 10.0
"""Seconds for one call of a hook."""

LEAVE_MAX: Final = 5.0
"""Seconds for which a leaving worker waits for the hooks that are still to be called."""

NAMES: Final = {
    "failed": ("failed",), "crashed": ("failed",), "dead": ("dead",), "lost": ("lost",), "refused": ("lost",),
}  # fmt: skip
"""Which hooks are told of a lease that ended so; a failure that was the last one is told to both."""


class OutcomeHooks:
    """Calls an app's hooks one event at a time, in their order."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._events: asyncio.Queue[JobEvent] = asyncio.Queue(WAITING_MAX)
        self._seldom = RateLimited(5.0)
        self._calling = False

    def ended(self, attempt: Attempt) -> None:
        """A lease has ended, and that is recorded."""
        if type(attempt.outcome) is Done and attempt.ended_as is None:
            return
        how = how_ended(attempt)
        names: tuple[str, ...] = NAMES.get(how, ())
        if attempt.stopping is StopReason.CANCEL:
            return
        if how == "dead" and isinstance(attempt.outcome, Failed | Crashed):
            names = ("failed", "dead")
        for name in names:
            if self._hooks.of(name):
                self._put(_event(name, attempt))

    def _put(self, event: JobEvent) -> None:
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            if self._seldom.allows(""):
                log.warning(
                    "%d events wait for the hooks of this app; more of them are left out: job %d (%s) %s",
                    WAITING_MAX, event.job_id, event.task, event.name,
                )  # fmt: skip

    async def run(self) -> None:
        """Call hooks until cancelled."""
        while True:
            event = await self._events.get()
            self._calling = True
            try:
                for hook in self._hooks.of(event.name):
                    await _call(hook, event)
            finally:
                self._calling = False

    @property
    def idle(self) -> bool:
        return self._events.empty() and not self._calling


async def _call(hook: object, event: JobEvent) -> None:
    """One hook; whatever it raises is logged, and harms neither a job nor the other hooks."""
    named = getattr(hook, "__qualname__", repr(hook))
    try:
        await call_hook(hook, event, seconds=HOOK_MAX)  # type: ignore[arg-type]
    except TimeoutError:
        log.error("hook %s of job %d took over %.0f s, and was left", named, event.job_id, HOOK_MAX)
    except asyncio.CancelledError:
        if asyncio.current_task().cancelling():  # type: ignore[union-attr]
            raise
        log.error("hook %s of job %d was cancelled by itself", named, event.job_id)
    except BaseException as error:
        log.error("hook %s of job %d failed: %s", named, event.job_id, describe_error(error))


def _event(name: str, attempt: Attempt) -> JobEvent:
    job, error = attempt.job, None
    match attempt.outcome:
        case Failed(said) | Crashed(said):
            error = said
        case Dead(reason, said):
            error = said or reason
    return JobEvent(
        name=name, job_id=job.id, task=job.task, queue=job.queue, attempt=job.attempt,
        max_attempts=job.max_attempts, token=job.token, error=error,
    )  # fmt: skip
