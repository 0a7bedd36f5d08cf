"""Enqueues at the same time: many callers of one process, beside a bulk enqueue and beside a commit each.

The forms run in turn, round by round, and a ratio is the median of the rounds' ratios: a machine that is busy
with something else is so for both sides of a ratio.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Final

from faultline.client.handle import Handle
from faultline.lab.bench.case import Case, CaseResult, CaseRunner, Row
from faultline.lab.bench.load import BATCH, PAD, noop
from faultline.lab.bench.run_bench import proof
from faultline.lab.bench.scenario import BenchScenario
from faultline.store import calls
from faultline.store.pool import AsyncStore
from faultline.telemetry import tracing

BULK: Final = "bulk"
TRACE: Final = "00-{:032x}-{:016x}-01"

Lap = Callable[[float], int]
"""Enqueue for so many seconds; returns how many jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredSize:
    """How many coroutines and threads call at the same time, and how long and how often each form runs."""

    coroutines: tuple[int, ...] = (1, 16, 64, 256)
    traced: tuple[int, ...] = (64,)
    threads: tuple[int, ...] = (1, 16)
    seconds: float = 1.0
    rounds: int = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way to enqueue, and the same callers without gathering."""

    label: str
    callers: int
    gathered: Lap
    alone: Lap | None = None


def cases(stand: CaseRunner, size: GatheredSize) -> Iterator[CaseResult]:
    with stand.case("callers of one process") as case, asyncio.Runner() as loop:
        astore = AsyncStore(case.dsn)
        forms = list(_forms(case, loop, astore, size))
        rates = _in_turn(case, forms, size)
        loop.run(astore.close())
        loop.run(case.app.aclose())
        jobs = sum(done for _, done in rates.pop("jobs"))
        checked = proof(case, jobs) | {"jobs": jobs}
        for number, form in enumerate(forms):
            row = _row(form, {name: [rate for rate, _ in laps] for name, laps in rates.items()})
            yield CaseResult(row | (checked if number == 0 else {}))


Laps = dict[str, list[tuple[float, int]]]
"""The rate and the number of jobs of each lap, by its form."""


def _in_turn(case: Case, forms: list[Form], size: GatheredSize) -> Laps:
    laps: Laps = {"jobs": []}
    for number in range(size.rounds):
        case.told("enqueue", number, size.rounds)
        for form in forms:
            for name, lap in ((form.label, form.gathered), (f"{form.label} alone", form.alone)):
                if lap is not None:
                    began = time.perf_counter()
                    done = lap(size.seconds)
                    laps.setdefault(name, []).append((done / (time.perf_counter() - began), done))
                    laps["jobs"].append(laps[name][-1])
    return laps


def _row(form: Form, rates: dict[str, list[float]]) -> Row:
    ours, alone = rates[form.label], rates.get(f"{form.label} alone")
    return {
        "case": form.label, "callers": form.callers, "enqueued_per_second": median(ours),
        "alone_per_second": None if alone is None else median(alone),
        "of_bulk": _ratio(ours, rates[BULK]), "of_alone": None if alone is None else _ratio(ours, alone),
    }  # fmt: skip


def _ratio(ours: list[float], others: list[float]) -> float:
    return median(our / other for our, other in zip(ours, others, strict=True))


def _forms(case: Case, loop: asyncio.Runner, astore: AsyncStore, size: GatheredSize) -> Iterator[Form]:
    @case.app.task(name="noop")
    async def one(n: int, pad: str) -> None: ...

    async def asend(number: int) -> Handle[None]:
        return await one.aenqueue(number, PAD)

    async def asend_alone(number: int) -> int:
        return await astore.run(calls.enqueue(one.new(number, PAD)))

    def together(callers: int, send: Callable[[int], Awaitable[object]]) -> Lap:
        return lambda seconds: loop.run(_in_coroutines(callers, send, seconds))

    def beside(callers: int, send: Callable[[int], object]) -> Lap:
        return lambda seconds: _in_threads(callers, send, seconds)

    yield Form(label=BULK, callers=1, gathered=lambda seconds: _bulk(case, seconds))
    for callers in size.coroutines:
        yield Form(
            label=f"{callers} coroutines", callers=callers,
            gathered=together(callers, asend), alone=together(callers, asend_alone),
        )  # fmt: skip
    for callers in size.traced:
        traced = together(callers, asend)
        yield Form(label=f"{callers} traced", callers=callers, gathered=partial(_traced, traced))
    for callers in size.threads:
        yield Form(
            label=f"{callers} threads", callers=callers,
            gathered=beside(callers, lambda number: one.enqueue(number, PAD)),
            alone=beside(callers, lambda number: case.store.run(calls.enqueue(one.new(number, PAD)))),
        )  # fmt: skip


def _bulk(case: Case, seconds: float) -> int:
    jobs, until = 0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        jobs += len(case.app.enqueue_many([noop(jobs + number) for number in range(BATCH)]))
    return jobs


async def _in_coroutines(callers: int, send: Callable[[int], Awaitable[object]], seconds: float) -> int:
    async def call() -> int:
        jobs = 0
        while time.perf_counter() < until:
            await send(jobs)
            jobs += 1
        return jobs

    until = time.perf_counter() + seconds
    return sum(await asyncio.gather(*(call() for _ in range(callers))))


def _in_threads(callers: int, send: Callable[[int], object], seconds: float) -> int:
    done: list[int] = []

    def call() -> None:
        jobs = 0
        while time.perf_counter() < until:
            send(jobs)
            jobs += 1
        done.append(jobs)

    until = time.perf_counter() + seconds
    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done)


class _Span:
    """A trace context of its own for each job, and nothing recorded: the exporter is not measured."""

    def __init__(self, number: int) -> None:
        self.trace: str | None = TRACE.format(number, number)

    def end(self, job_id: int | None, jobs: int, queue: str | None, error: BaseException | None) -> None: ...


class _Tracer:
    def __init__(self) -> None:
        self._count = 0

    def sending(self, queue: str | None, task: str | None) -> _Span:
        self._count += 1
        return _Span(self._count)


@contextmanager
def _tracing() -> Iterator[None]:
    before = tracing.tracer
    tracing.install(_Tracer())  # type: ignore[arg-type]  # it is asked for enqueues alone
    try:
        yield
    finally:
        tracing.install(before)


def _traced(lap: Lap, seconds: float) -> int:
    with _tracing():
        return lap(seconds)


SCENARIO = BenchScenario(
    name="gathered",
    summary="single enqueues from many coroutines and threads of one process, beside bulk and a commit each",
    full=GatheredSize(),
    quick=GatheredSize(coroutines=(1, 8), traced=(8,), threads=(4,), seconds=0.2, rounds=1),
    cases=cases,
    columns="callers enqueued_per_second of_bulk alone_per_second of_alone",
)
