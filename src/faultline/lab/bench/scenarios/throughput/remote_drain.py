"""Remote drain: the same jobs, drained by a worker on the database and by one over a server, in turn."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from statistics import median

from faultline.lab.bench.bench_server import served
from faultline.lab.bench.case import CaseResult, CaseRunner
from faultline.lab.bench.drain_run import drain
from faultline.lab.bench.load import fill
from faultline.lab.bench.scenario import BenchScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteDrainSize:
    """No-op jobs of about 100 bytes, drained by one worker, so many times on each way."""

    jobs: int = 20_000
    rounds: int = 5


def cases(stand: CaseRunner, size: RemoteDrainSize) -> Iterator[CaseResult]:
    direct: list[float] = []
    remote: list[float] = []
    for number in range(1, size.rounds + 1):
        for way, rates in (("direct", direct), ("server", remote)):
            found = _case(stand, size.jobs, way, number)
            rates.append(found.row["jobs_per_second"])
            yield found if way == "direct" else _with_ratio(found, direct, remote)


def _case(stand: CaseRunner, jobs: int, way: str, number: int) -> CaseResult:
    with stand.case(f"{way}, round {number}") as case:
        fill(case, jobs)
        with served(case.dsn) if way == "server" else nullcontext() as reach:
            return drain(case, jobs, {"way": way}, reach=reach)


def _with_ratio(found: CaseResult, direct: list[float], remote: list[float]) -> CaseResult:
    """With this round's share of the direct rate, and that of the medians so far."""
    shares = {"of_direct": remote[-1] / direct[-1], "of_direct_median": median(remote) / median(direct)}
    return replace(found, row=found.row | shares)


SCENARIO = BenchScenario(
    name="remote",
    summary="no-op jobs drained on the database and over a server, in turn: rates, and their ratio",
    full=RemoteDrainSize(),
    quick=RemoteDrainSize(jobs=300, rounds=1),
    cases=cases,
    every=0.25,
    columns="way jobs jobs_per_second of_direct of_direct_median client_cpu_us_per_job server_cpu_us_per_job",
)
