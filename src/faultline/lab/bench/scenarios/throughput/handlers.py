"""Handlers that take their time, as coroutines, in threads and in processes: how near to the ideal."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from faultline.lab.bench.bench_app import app
from faultline.lab.bench.case import Case, CaseResult, CaseRunner
from faultline.lab.bench.drain_run import drain
from faultline.lab.bench.load import fill, nap
from faultline.lab.bench.plots.plot import Bars
from faultline.lab.bench.scenario import BenchScenario

TASKS = {"coroutine": "nap", "thread": "nap_thread", "process": "nap_process"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlersSize:
    """Milliseconds a handler takes; jobs for so many seconds of an ideal worker; jobs at once."""

    handler_ms: tuple[int, ...] = (1, 100)
    kinds: tuple[str, ...] = ("coroutine", "thread", "process")
    ideal_seconds: float = 4.0
    at_once: int = 20
    at_once_in_processes: int = 4


def cases(stand: CaseRunner, size: HandlersSize) -> Iterator[CaseResult]:
    for kind, ms in product(size.kinds, size.handler_ms):
        label = f"{kind}, {ms} ms"
        if TASKS[kind] in app.registry:
            with stand.case(label) as case:
                yield _case(case, size, kind, ms)
        else:
            yield CaseResult(
                {}, remark=f"{label}: skipped, @app.task of this release does not take run='process'"
            )


def _case(case: Case, size: HandlersSize, kind: str, ms: int) -> CaseResult:
    at_once = size.at_once_in_processes if kind == "process" else size.at_once
    ideal = at_once / ms * 1e3
    jobs = round(ideal * size.ideal_seconds)
    fill(case, jobs, nap(TASKS[kind], ms))
    facts = {"kind": kind, "handler_ms": ms, "concurrency": at_once}
    found = drain(case, jobs, facts, options=["--concurrency", str(at_once)])
    found.row["of_ideal"] = found.row["jobs_per_second"] / ideal
    return found


SCENARIO = BenchScenario(
    name="handlers",
    summary="handlers of 1 ms and 100 ms, as coroutines, in threads and in processes",
    full=HandlersSize(),
    quick=HandlersSize(handler_ms=(5,), ideal_seconds=0.1),
    cases=cases,
    every=0.25,
    columns=(
        "kind handler_ms concurrency jobs jobs_per_second of_ideal client_cpu_us_per_job "
        "server_cpu_us_per_job"
    ),
    plots=(
        Bars(
            name="ideal",
            title="Share of the ideal rate, by kind of handler",
            x="kind",
            y="of_ideal",
            by="handler_ms",
        ),
    ),
)
