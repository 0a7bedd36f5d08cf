"""The seam for traces: what begins and ends is told to a tracer, if one is installed; no vendor here.

A tracer that fails costs a span, never a job. While none is installed, one look at `tracer` is all it costs.
"""

import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from faultline.job import Job

T = TypeVar("T")

log = logging.getLogger("faultline.telemetry")

CONTEXT_CHARS_MAX: Final = 600
"""What the database takes; of a longer one the tracestate, which is for vendors, stays behind."""

_PARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Sending(Protocol):
    """Jobs on their way to their queues."""

    trace: str | None
    """The context to send along with them."""

    def end(self, job_id: int | None, jobs: int, queue: str | None, error: BaseException | None) -> None: ...


class Claiming(Protocol):
    """A claim under way; nothing is told of one that finds nothing."""

    trace: str | None

    def end(self, jobs: int) -> None: ...


class Processing(Protocol):
    """A handler that runs; the span is the current one in the context it was begun in."""

    trace: str | None

    def end(self, outcome: str, error: str | None) -> None: ...


class Tracer(Protocol):
    """What an exporter of traces does."""

    def sending(self, queue: str | None, task: str | None) -> Sending: ...
    def claiming(self, queues: Sequence[str]) -> Claiming: ...
    def processing(self, job: Job, trace: str | None) -> Processing: ...
    def settled(self, spans: Sequence[Processing], jobs: int, began: int) -> None: ...
    def refused(self, job: Job, span: Processing | None, reason: str, current_token: int | None) -> None: ...
    def resume(self, trace: str) -> None: ...


tracer: Tracer | None = None
"""The one that is installed."""


def install(new: Tracer | None) -> None:
    """Have spans made from now on, or no more."""
    global tracer
    tracer = new


def context_of(parent: str | None, state: str | None = None) -> str | None:
    """The headers traceparent and tracestate as a job carries them; what is no context is none, not an error.

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
    """What a tracer gives, or nothing where it fails.

    >>> quietly(int, "seven") is None
    True
    """
    try:
        return make(*args)
    except Exception:
        log.debug("a tracer failed", exc_info=True)
        return None


def sending(queue: str | None, task: str | None) -> Sending | None:
    """Jobs are about to be sent; of a batch neither queue nor task is known yet."""
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
    """In a child process: what the handler does belongs to the span its worker began."""
    if trace is not None:
        _ask("resume", trace)


def _ask(what: str, *args: Any) -> Any:
    return None if tracer is None else quietly(lambda: getattr(tracer, what)(*args))
