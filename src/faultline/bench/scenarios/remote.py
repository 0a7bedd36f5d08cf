"""Remote drain: the same jobs, drained by a worker on the database and by one over a server, in turn."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from statistics import median

from faultline.bench.case import Found, Stand
from faultline.bench.draining import drain
from faultline.bench.load import fill
from faultline.bench.scenario import Scenario
from faultline.bench.serving import served


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """No-op jobs of about 100 bytes, drained by one worker, so many times on each way."""

    jobs: int = 20_000
    rounds: int = 5


def cases(stand: Stand, size: Size) -> Iterator[Found]:
    direct: list[float] = []
    remote: list[float] = []
    for number in range(1, size.rounds + 1):
        for way, rates in (("direct", direct), ("server", remote)):
            found = _case(stand, size.jobs, way, number)
            rates.append(found.row["jobs_per_second"])
            yield found if way == "direct" else _with_ratio(found, direct, remote)


def _case(stand: Stand, jobs: int, way: str, number: int) -> Found:
    with stand.case(f"{way}, round {number}") as case:
        fill(case, jobs)
        with served(case.dsn) if way == "server" else nullcontext() as reach:
            return drain(case, jobs, {"way": way}, reach=reach)


def _with_ratio(found: Found, direct: list[float], remote: list[float]) -> Found:
    """With this round's share of the direct rate, and that of the medians so far."""
    shares = {"of_direct": remote[-1] / direct[-1], "of_direct_median": median(remote) / median(direct)}
    return replace(found, row=found.row | shares)


SCENARIO = Scenario(
    name="remote",
    summary="no-op jobs drained on the database and over a server, in turn: rates, and their ratio",
    full=Size(),
    quick=Size(jobs=300, rounds=1),
    cases=cases,
    every=0.25,
    columns="way jobs jobs_per_second of_direct of_direct_median client_cpu_us_per_job server_cpu_us_per_job",
)
