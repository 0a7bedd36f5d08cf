"""Traces for OpenTelemetry, by its API alone: the program chooses SDK and exporter.

    from faultline.tracing import opentelemetry
    opentelemetry.instrument()

Each enqueue is a span `send QUEUE`, and its context travels with the job. A claim that found work is a
span of its own, each handler a span `process QUEUE` in that claim's trace, with links to the enqueue of
the job and to the attempt before. Records of outcomes, and refusals by the fence, are spans `settle`. The
names follow the conventions for messaging systems.
"""

import sys
from typing import TYPE_CHECKING

from faultline.errors import ConfigError
from faultline.telemetry import tracing

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from faultline.tracing.spans import Follow


def instrument(provider: "TracerProvider | None" = None, *, follow: "Follow" = "claim") -> None:
    """Make spans in this process from now on; of repeated calls the last counts.

    `follow="producer"` puts a handler's span into the trace of the producer of its job, and links it to its
    claim: one trace from a request to the end of its jobs, however long they wait.
    """
    try:
        from opentelemetry import trace

        from faultline.tracing.spans import SpanFactory
    except ImportError as missing:
        raise ConfigError(
            "traces need the package opentelemetry-api; "
            "install it with `pip install 'faultline-queue[tracing]'`"
        ) from missing
    import faultline

    made = trace.get_tracer("faultline", faultline.__version__, tracer_provider=provider)
    tracing.install(SpanFactory(made, follow))


def uninstrument() -> None:
    """Make no more spans."""
    tracing.install(None)


def instrument_if_configured() -> bool:
    """Make spans if the program has set up an SDK; without one, not even the API is imported."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or tracing.tracer is not None:
        return tracing.tracer is not None
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return False
    instrument()
    return True
