"""Keyed: every job has a key, and one in five names a job that is already there."""

from collections.abc import Iterator
from dataclasses import dataclass

from faultline.bench.case import Found, Stand
from faultline.bench.draining import drain
from faultline.bench.load import Make, fill, noop
from faultline.bench.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Jobs asked for, and of a hundred so many that are asked for twice."""

    jobs: int = 20_000
    duplicates_percent: tuple[int, ...] = (0, 20)


def cases(stand: Stand, size: Size) -> Iterator[Found]:
    for percent in size.duplicates_percent:
        with stand.case(f"{percent} % duplicates") as case:
            unique = size.jobs * (100 - percent) // 100
            rate = fill(case, size.jobs, _keyed(unique))
            yield drain(case, unique, {"asked": size.jobs, "enqueued_per_second": rate})


def _keyed(unique: int) -> Make:
    """The last ones ask again for what the first ones asked for."""
    return lambda number: noop(number % unique, key=f"order-{number % unique}")


SCENARIO = Scenario(
    name="keyed",
    summary="20,000 jobs asked for, each with a key, none and one in five of them twice",
    full=Size(),
    quick=Size(jobs=300, duplicates_percent=(20,)),
    cases=cases,
    every=0.25,
    columns=(
        "case asked jobs succeeded lost enqueued_per_second jobs_per_second server_cpu_us_per_job "
        "wal_bytes_per_job"
    ),
)
