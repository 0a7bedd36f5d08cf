"""Traces: the context travels with the job, and every attempt finds the one before it."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from faultline import Faultline, Job
from faultline.retry import Constant
from faultline.store import calls
from faultline.task import spec_of
from faultline.telemetry import tracing
from faultline.tracing import opentelemetry
from tests.metrics import bad_day
from tests.support import LEASE, claim_many, enqueue, state_of
from tests.worker.harness import InProcess, drain, eventually, quick, working

DEAD = "00-11111111111111111111111111111111-1111111111111111-01"


class Recorder:
    """The spans that ended, and a tracer of the user's own."""

    def __init__(self, exporter: InMemorySpanExporter, provider: TracerProvider) -> None:
        self._exporter = exporter
        self.tracer = provider.get_tracer("shop")

    def all(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = eventually(lambda: self.named(name))
        return span


@pytest.fixture
def spans() -> Iterator[Recorder]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    opentelemetry.instrument(provider)
    yield Recorder(exporter, provider)
    opentelemetry.uninstrument()


@pytest.fixture
def app(database: str) -> Iterator[Faultline]:
    app = Faultline(database)
    yield app
    app.close()


def linked(span: ReadableSpan) -> set[int]:
    return {link.context.span_id for link in span.links}


def span_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def about(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_job_is_linked_to_the_span_that_enqueued_it(app, spans, database):
    @app.task(queue="billing")
    async def charge(job: Job) -> None:
        with spans.tracer.start_as_current_span("inside"):
            pass

    with spans.tracer.start_as_current_span("request") as request:
        handle = charge.enqueue()
    drain(database, charge.spec, config=quick(queues={"billing": None}))

    send, process, claim = (
        spans.one("send billing"),
        spans.one("process billing"),
        spans.one("receive billing"),
    )
    assert send.kind is SpanKind.PRODUCER
    assert send.parent.span_id == request.get_span_context().span_id
    assert process.kind is SpanKind.CONSUMER
    assert linked(process) == {span_id(send)}
    assert process.parent.span_id == span_id(claim)
    assert spans.one("inside").parent.span_id == span_id(process)
    assert about(process) == {
        "messaging.system": "faultline", "messaging.operation.name": "process",
        "messaging.operation.type": "process", "messaging.destination.name": "billing",
        "messaging.message.id": str(handle.id), "faultline.task": "charge", "faultline.attempt": 1,
        "faultline.token": 1, "faultline.outcome": "done",
    }  # fmt: skip
    assert about(send)["messaging.message.id"] == str(handle.id)
    assert (
        about(claim)["messaging.batch.message_count"] == 1
    )  # and of claims that found nothing there is none
    assert linked(spans.one("settle")) == {span_id(process)}


def test_async_clients_batches_and_own_transactions_are_traced_too(app, spans, database):
    @app.task
    async def charge() -> None:
        """Nothing to do."""

    async def produce() -> None:
        await charge.aenqueue()
        await charge.aenqueue_many([charge.new(), charge.new()])
        async with await psycopg.AsyncConnection.connect(database) as conn:
            await charge.aenqueue_in(conn)
        await app.aclose()

    asyncio.run(produce())
    charge.enqueue_many([charge.new(), charge.new()])
    with psycopg.connect(database) as conn:
        charge.enqueue_in(conn)
    drain(database, charge.spec)

    sent = spans.named("send default")
    counts = sorted(about(span).get("messaging.batch.message_count", 1) for span in sent)
    assert counts == [1, 1, 1, 2, 2]
    processed = spans.named("process default")
    assert len(processed) == 7
    assert set.union(*map(linked, processed)) == {span_id(span) for span in sent}


def test_a_retry_is_linked_to_the_attempt_before_and_s10_tells_no_text_of_its_error(app, spans, database):
    @app.task(max_attempts=3, retry=Constant(timedelta(0)))
    async def flaky(job: Job) -> None:
        if job.attempt == 1:
            raise ValueError("password=hunter2")

    job = flaky.enqueue().id
    with working(database, flaky.spec):
        eventually(lambda: len(spans.named("process default")) == 2)
        eventually(lambda: app.get(job).state == "succeeded")

    first, second = spans.named("process default")
    assert (about(first)["faultline.attempt"], about(second)["faultline.attempt"]) == (1, 2)
    assert first.status.status_code is StatusCode.ERROR
    assert about(first)["error.type"] == "ValueError"
    assert first.parent.span_id in linked(second)  # the claim of the first, in whose trace the first is
    assert span_id(spans.one("send default")) in linked(first) & linked(second)
    assert second.status.status_code is not StatusCode.ERROR
    assert "hunter2" not in "".join(span.to_json() for span in spans.all())


def test_a_takeover_is_linked_to_the_claim_of_the_worker_that_died(spans, database, store, clock):
    """A dead worker wrote nothing after its claim; that is enough."""
    enqueue(store, task="charge", trace=DEAD.replace("1", "3"))
    claim_many(store, trace=DEAD)
    clock.advance(LEASE + timedelta(seconds=1))
    store.run(calls.reap())
    store.run(calls.promote())

    async def charge() -> None:
        """Nothing to do."""

    drain(database, charge)

    process = spans.one("process default")
    assert linked(process) == {0x1111111111111111, 0x3333333333333333}
    assert about(process)["faultline.attempt"] == 2


def test_a_refusal_is_a_span_with_both_tokens(spans, database, store):
    bad_day.app.connect_to(database)
    job = bad_day.too_late.enqueue(database).id
    worker = InProcess(database, bad_day.app.registry, quick(), watchdog=False).start()
    try:
        refused = spans.one("settle default")
    finally:
        worker.leave()
        bad_day.app.close()

    process = spans.one("process default")
    assert refused.parent.span_id == span_id(process)
    assert refused.status.status_code is StatusCode.ERROR
    facts = about(refused)
    assert (facts["faultline.token"], facts["faultline.current_token"]) == (1, 2)
    assert facts["faultline.refusal.reason"] == "token_mismatch"
    assert facts["messaging.message.id"] == str(job)
    assert "claim" not in " ".join(facts)


def test_a_plain_handler_is_inside_its_span_and_a_commit_is_an_event_of_it(app, spans, database):
    seen = []

    @app.task
    def spend(job: Job) -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)
        with job.complete():
            pass

    spend.enqueue()
    drain(database, spend.spec)

    process = spans.one("process default")
    assert seen == [span_id(process)]
    assert about(process)["faultline.outcome"] == "committed"
    assert [event.name for event in process.events] == ["commit"]


def test_following_the_producer_makes_it_one_trace(app, spans, database):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans._exporter))
    opentelemetry.instrument(provider, follow="producer")

    @app.task
    async def charge() -> None:
        """Nothing to do."""

    charge.enqueue()
    drain(database, charge.spec)

    send, process, claim = (
        spans.one("send default"),
        spans.one("process default"),
        spans.one("receive default"),
    )
    assert process.parent.span_id == span_id(send)
    assert linked(process) == {span_id(claim)}


def test_without_a_tracer_nothing_is_sent(app, database):
    @app.task
    async def charge() -> None:
        """Nothing to do."""

    charge.enqueue()

    with psycopg.connect(database) as conn:
        assert conn.execute("select trace from faultline.active").fetchall() == [(None,)]
    assert "trace" not in calls.enqueue(charge.new()).args


def test_with_an_api_and_no_sdk_nothing_is_sent_either(app, database):
    """Its spans have no identity: there is nothing to carry."""
    opentelemetry.instrument()
    try:
        app_task = app.task(_nothing)
        app_task.enqueue()
        drain(database, app_task.spec)
    finally:
        opentelemetry.uninstrument()

    with psycopg.connect(database) as conn:
        assert conn.execute("select count(*) from faultline.ledger").fetchone() == (1,)


async def _nothing() -> None:
    """Nothing to do."""


class Hangs(SpanExporter):
    """A collector that never answers."""

    def export(self, spans: Any) -> SpanExportResult:
        time.sleep(3600)
        return SpanExportResult.FAILURE


class Breaks:
    """A tracer of a user's own making that always fails."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no tracing today")


def test_m4_a_collector_that_hangs_holds_no_job_up(database, store):
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Hangs(), schedule_delay_millis=10))
    opentelemetry.instrument(provider)
    try:
        jobs = [enqueue(store, task="nothing") for _ in range(50)]
        drain(database, spec_of(_nothing, name="nothing"))
    finally:
        opentelemetry.uninstrument()

    assert {state_of(store, job) for job in jobs} == {"succeeded"}


def test_m4_a_tracer_that_fails_costs_a_span_and_no_job(database, store):
    job = enqueue(store, task="nothing")
    tracing.install(Breaks())
    try:
        with contextlib.suppress(RuntimeError):
            drain(database, spec_of(_nothing, name="nothing"))
    finally:
        tracing.install(None)

    assert state_of(store, job) == "succeeded"


def test_the_command_line_instruments_only_where_an_sdk_is_set_up(monkeypatch):
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: trace.ProxyTracerProvider())
    assert not opentelemetry.instrument_if_configured()

    monkeypatch.setattr(trace, "get_tracer_provider", TracerProvider)
    try:
        assert opentelemetry.instrument_if_configured()
    finally:
        opentelemetry.uninstrument()
