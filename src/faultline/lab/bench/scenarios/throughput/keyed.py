"""Keyed: every job has a key, and one in five names a job that is already there."""

from collections.abc import Iterator
from dataclasses import dataclass

from faultline.lab.bench.case import CaseResult, CaseRunner
from faultline.lab.bench.drain_run import drain
from faultline.lab.bench.load import Make, fill, noop
from faultline.lab.bench.scenario import BenchScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedSize:
    """Jobs asked for, and of a hundred so many that are asked for twice."""

    jobs: int = 20_000
    duplicates_percent: tuple[int, ...] = (0, 20)


def cases(stand: CaseRunner, size: KeyedSize) -> Iterator[CaseResult]:
    for percent in size.duplicates_percent:
        with stand.case(f"{percent} % duplicates") as case:
            unique = size.jobs * (100 - percent) // 100
            rate = fill(case, size.jobs, _keyed(unique))
            yield drain(case, unique, {"asked": size.jobs, "enqueued_per_second": rate})


def _keyed(unique: int) -> Make:
    """The last ones ask again for what the first ones asked for."""
    return lambda number: noop(number % unique, key=f"order-{number % unique}")


SCENARIO = BenchScenario(
    name="keyed",
    summary="20,000 jobs asked for, each with a key, none and one in five of them twice",
    full=KeyedSize(),
    quick=KeyedSize(jobs=300, duplicates_percent=(20,)),
    cases=cases,
    every=0.25,
    columns=(
        "case asked jobs succeeded lost enqueued_per_second jobs_per_second server_cpu_us_per_job "
        "wal_bytes_per_job"
    ),
)
