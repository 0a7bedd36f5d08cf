"""The interface for traces: begins and ends are passed to a tracer, if one is installed; no vendor here.

A tracer that fails costs a span, never a job. Without a tracer, the cost is one look at `tracer`.
"""

import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from faultline.job import Job

T = TypeVar("T")

log = logging.getLogger("faultline.telemetry")

CONTEXT_CHARS_MAX: Final = 600
"""The database's limit; a longer context loses the tracestate, which is for vendors."""

_PARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Sending(Protocol):
    """Jobs on their way to their queues."""

    trace: str | None
    """The trace context to send with them."""

    def end(self, job_id: int | None, jobs: int, queue: str | None, error: BaseException | None) -> None: ...


class Claiming(Protocol):
    """A claim under way; a claim without jobs makes no span."""

    trace: str | None

    def end(self, jobs: int) -> None: ...


class Processing(Protocol):
    """A running handler; its span is the current one in the context in which it began."""

    trace: str | None

    def end(self, outcome: str, error: str | None) -> None: ...


class Tracer(Protocol):
    """The interface of an exporter of traces."""

    def sending(self, queue: str | None, task: str | None) -> Sending: ...
    def claiming(self, queues: Sequence[str]) -> Claiming: ...
    def processing(self, job: Job, trace: str | None) -> Processing: ...
    def settled(self, spans: Sequence[Processing], jobs: int, began: int) -> None: ...
    def refused(self, job: Job, span: Processing | None, reason: str, current_token: int | None) -> None: ...
    def resume(self, trace: str) -> None: ...


tracer: Tracer | None = None
"""The installed tracer."""


def install(new: Tracer | None) -> None:
    """Install a tracer, or remove it with None."""
    global tracer
    tracer = new


def context_of(parent: str | None, state: str | None = None) -> str | None:
    """The headers traceparent and tracestate as a job carries them; an invalid context counts as none.

    >>> context_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 vendor=1'
    >>> context_of("nonsense") is None
    True
    """
    if parent is None or not _PARENT.fullmatch(parent):
        return None
    whole = f"{parent} {state}" if state else parent
    return whole if len(whole) <= CONTEXT_CHARS_MAX and whole.isascii() and whole.isprintable() else parent


def quietly(make: Callable[..., T], *args: Any) -> T | None:
    """A tracer's answer, or nothing where it fails.

    >>> quietly(int, "seven") is None
    True
    """
    try:
        return make(*args)
    except Exception:
        log.debug("a tracer failed", exc_info=True)
        return None


def sending(queue: str | None, task: str | None) -> Sending | None:
    """Jobs are about to be sent; a batch has no one queue and task."""
    begun: Sending | None = _ask("sending", queue, task)
    return begun


def claiming(queues: Sequence[str]) -> Claiming | None:
    """A claim is about to be sent."""
    begun: Claiming | None = _ask("claiming", queues)
    return begun


def processing(job: Job, trace: str | None) -> Processing | None:
    """A handler is about to run."""
    begun: Processing | None = _ask("processing", job, trace)
    return begun


def settled(spans: Sequence[Processing | None], began: int) -> None:
    """Leases were recorded in one call that began at this moment, in nanoseconds since 1970."""
    _ask("settled", [span for span in spans if span is not None], len(spans), began)


def refused(job: Job, span: Processing | None, reason: str, current_token: int | None) -> None:
    """The fence refused a write of this job's lease."""
    _ask("refused", job, span, reason, current_token)


def resume(trace: str | None) -> None:
    """In a child process: spans made by the handler belong to the span that its worker began."""
    if trace is not None:
        _ask("resume", trace)


def _ask(what: str, *args: Any) -> Any:
    return None if tracer is None else quietly(lambda: getattr(tracer, what)(*args))
