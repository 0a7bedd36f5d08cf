"""The spans: their names, attributes and links."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from opentelemetry import context
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from faultline.job import Job
from faultline.telemetry import tracing

SYSTEM: Final = "faultline"

# The constants of the conventions are in a private module of OpenTelemetry, so they are repeated here.
MESSAGING_SYSTEM: Final = "messaging.system"
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
MESSAGE_ID: Final = "messaging.message.id"
BATCH_COUNT: Final = "messaging.batch.message_count"
ERROR_TYPE: Final = "error.type"
TASK: Final = "faultline.task"
ATTEMPT: Final = "faultline.attempt"
TOKEN: Final = "faultline.token"
CURRENT_TOKEN: Final = "faultline.current_token"
OUTCOME: Final = "faultline.outcome"
REASON: Final = "faultline.refusal.reason"

LINKS_MAX: Final = 100
"""Of a batch that was recorded together; an SDK keeps 128 by default."""

Follow = Literal["claim", "producer"]
"""The trace that a handler's span is part of."""


class SpanFactory:
    """Makes spans of the tracer's calls."""

    def __init__(self, tracer: Tracer, follow: Follow) -> None:
        self.tracer = tracer
        self.follow = follow
        self._words = TraceContextTextMapPropagator()

    def sending(self, queue: str | None, task: str | None) -> "SendingSpan":
        about = {**_about("enqueue", "send"), **_without_none({DESTINATION: queue, TASK: task})}
        span = self.tracer.start_span(_named("send", queue), kind=SpanKind.PRODUCER, attributes=about)
        return SendingSpan(self, span)

    def claiming(self, queues: Sequence[str]) -> "ClaimingSpan":
        queue = queues[0] if len(queues) == 1 else None
        about = {**_about("claim", "receive"), **_without_none({DESTINATION: queue})}
        # A root: the current span of the worker's loop, if any, did not cause this claim.
        span = self.tracer.start_span(
            _named("receive", queue), context=Context(), kind=SpanKind.CLIENT, attributes=about
        )
        return ClaimingSpan(self, span)

    def processing(self, job: Job, trace: str | None) -> "ProcessingSpan":
        producer, before, claim = contexts_of(trace)
        first, other = (claim, producer) if self.follow == "claim" else (producer, claim)
        links = [Link(known) for known in map(self.span_context, (other, before)) if known is not None]
        about = {
            **_about("process", "process"), DESTINATION: job.queue, MESSAGE_ID: str(job.id), TASK: job.task,
            ATTEMPT: job.attempt, TOKEN: job.token,
        }  # fmt: skip
        parent = self.context(first) if first else Context()
        span = self.tracer.start_span(
            _named("process", job.queue),
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes=about,
            links=links,
        )
        return ProcessingSpan(self, span)

    def settled(self, spans: Sequence[tracing.Processing], jobs: int, began: int) -> None:
        recorded = [self.span_context(span.trace or "") for span in spans[:LINKS_MAX]]
        span = self.tracer.start_span(
            "settle", context=self.context(spans[0].trace or "") if len(spans) == 1 else Context(),
            kind=SpanKind.CLIENT, start_time=began,
            attributes={**_about("settle", "settle"), BATCH_COUNT: jobs},
            links=[Link(known) for known in recorded if known is not None],
        )  # fmt: skip
        span.end()

    def refused(
        self, job: Job, span: tracing.Processing | None, reason: str, current_token: int | None
    ) -> None:
        about = {
            **_about("settle", "settle"), DESTINATION: job.queue, MESSAGE_ID: str(job.id), TASK: job.task,
            ATTEMPT: job.attempt, TOKEN: job.token, REASON: reason, ERROR_TYPE: "LeaseLost",
            **_without_none({CURRENT_TOKEN: current_token}),
        }  # fmt: skip
        parent = self.context(span.trace) if span is not None and span.trace else Context()
        late = self.tracer.start_span(
            _named("settle", job.queue), context=parent, kind=SpanKind.CLIENT, attributes=about
        )
        late.set_status(StatusCode.ERROR, "the fence refused it")
        late.end()

    def resume(self, trace: str) -> None:
        context.attach(self.context(trace))

    # contexts, as text that travels with a job

    def text(self, span: Span) -> str | None:
        """A span's context as a job carries it: traceparent, a blank, tracestate; None of an invalid span."""
        carrier: dict[str, str] = {}
        self._words.inject(carrier, set_span_in_context(span))
        return tracing.context_of(carrier.get("traceparent"), carrier.get("tracestate"))

    def context(self, text: str) -> Context:
        """The context from that text; an unreadable text gives an empty context."""
        parent, _, state = text.partition(" ")
        return self._words.extract({"traceparent": parent, "tracestate": state}, Context())

    def span_context(self, text: str) -> Any:
        found = get_current_span(self.context(text)).get_span_context() if text else None
        return found if found is not None and found.is_valid else None


class SendingSpan:
    """Jobs on their way to their queues."""

    def __init__(self, spans: SpanFactory, span: Span) -> None:
        self._span = span
        self.trace = spans.text(span)

    def end(self, job_id: int | None, jobs: int, queue: str | None, error: BaseException | None) -> None:
        about: dict[str, Any] = {MESSAGE_ID: None if job_id is None else str(job_id), DESTINATION: queue}
        if job_id is None:
            about[BATCH_COUNT] = jobs
        if queue is not None:
            self._span.update_name(_named("send", queue))
        self._span.set_attributes(_without_none(about))
        if error is not None:
            _fail(self._span, type(error).__name__)
        self._span.end()


class ClaimingSpan:
    """A claim under way; one without jobs is never ended, so its span is never exported."""

    def __init__(self, spans: SpanFactory, span: Span) -> None:
        self._span = span
        self.trace = spans.text(span)

    def end(self, jobs: int) -> None:
        self._span.set_attribute(BATCH_COUNT, jobs)
        self._span.end()


class ProcessingSpan:
    """A running handler: its span is current from its beginning to its end."""

    def __init__(self, spans: SpanFactory, span: Span) -> None:
        self._span = span
        self.trace = spans.text(span)
        self._before = context.attach(set_span_in_context(span))

    def end(self, outcome: str, error: str | None) -> None:
        context.detach(self._before)
        self._span.set_attribute(OUTCOME, outcome)
        if outcome == "committed":
            self._span.add_event("commit")
        if error is not None:
            _fail(self._span, error)
        self._span.end()


def contexts_of(trace: str | None) -> tuple[str, str, str]:
    """The contexts of the producer, of the claim before the last, and of the last, as far as known.

    >>> contexts_of("producer"), contexts_of("producer\\n\\nclaim")
    (('producer', '', ''), ('producer', '', 'claim'))
    """
    producer, before, claim = [*(trace or "").split("\n"), "", ""][:3]
    return producer, before, claim


def _about(operation: str, kind: str) -> dict[str, Any]:
    return {MESSAGING_SYSTEM: SYSTEM, OPERATION_NAME: operation, OPERATION_TYPE: kind}


def _named(operation: str, queue: str | None) -> str:
    return operation if queue is None else f"{operation} {queue}"


def _without_none(about: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if value is not None}


def _fail(span: Span, kind: str) -> None:
    """The kind of an error and no more: its text may hold secrets."""
    span.set_attribute(ERROR_TYPE, kind)
    span.set_status(StatusCode.ERROR)
