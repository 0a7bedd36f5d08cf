"""Traces for OpenTelemetry, by its API alone: which SDK and exporter there are is the program's business.

    from faultline.exporters import opentelemetry
    opentelemetry.instrument()

Each enqueue is a span `send QUEUE`, and its context travels with the job. A claim that found work is a span
of its own, each handler a span `process QUEUE` in that claim's trace, linked to who enqueued the job and to
the attempt before. What was recorded, and what the fence refused, are spans `settle`. The names follow the
conventions for messaging systems.
"""

import sys
from typing import TYPE_CHECKING

from faultline.errors import ConfigError
from faultline.telemetry import tracing

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from faultline.exporters.spans import Follow


def instrument(provider: "TracerProvider | None" = None, *, follow: "Follow" = "claim") -> None:
    """Have spans made in this process from now on; said twice, the last counts.

    `follow="producer"` puts a handler's span into the trace of whoever enqueued its job, and links it to its
    claim: one trace from a request to the end of its jobs, however long they wait.
    """
    try:
        from opentelemetry import trace

        from faultline.exporters.spans import Spans
    except ImportError as missing:
        raise ConfigError(
            "traces need the package opentelemetry-api; "
            "install it with `pip install 'faultline-queue[tracing]'`"
        ) from missing
    import faultline

    made = trace.get_tracer("faultline", faultline.__version__, tracer_provider=provider)
    tracing.install(Spans(made, follow))


def uninstrument() -> None:
    """No more spans."""
    tracing.install(None)


def instrument_if_configured() -> bool:
    """Have spans made if the program has set up an SDK; without one, not even the API is imported."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or tracing.tracer is not None:
        return tracing.tracer is not None
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return False
    instrument()
    return True
