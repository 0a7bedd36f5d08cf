"""One row: handlers that insert one row in the completing transaction, beside psycopg's insert and commit."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from faultline.job import NewJob
from faultline.lab.bench.case import Case, CaseResult, CaseRunner, Row
from faultline.lab.bench.drain_run import drain_warm
from faultline.lab.bench.load import fill
from faultline.lab.bench.raw_rows import TABLE, in_the_loop, in_threads
from faultline.lab.bench.scenario import BenchScenario
from faultline.store.driver.connect import connect
from faultline.task import MAX_ATTEMPTS

KINDS = {"coroutine": ("one_row", in_the_loop), "thread": ("one_row_thread", in_threads)}


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRowSize:
    """How many rows a round, how many rounds, and handlers at once."""

    jobs: int = 4_000
    warm_up: int = 1_000
    """Jobs before the clock starts: each connection has run the handler's statements by then."""
    rounds: int = 7
    at_once: int = 10
    kinds: tuple[str, ...] = tuple(KINDS)


def cases(stand: CaseRunner, size: OneRowSize) -> Iterator[CaseResult]:
    """Plain and ours in turn: what else the machine does meets both."""
    found: dict[str, list[Row]] = {kind: [] for kind in size.kinds}
    for number in range(1, size.rounds + 1):
        for kind in size.kinds:
            with stand.case(f"{kind}, round {number}") as case:
                result = _round(case, size, kind)
            found[kind].append(result.row)
            yield result
    for kind in size.kinds:
        yield CaseResult(_middle(f"{kind}, median", found[kind]))


def _round(case: Case, size: OneRowSize, kind: str) -> CaseResult:
    task, insert = KINDS[kind]
    with connect(case.dsn) as conn:
        conn.execute(TABLE)
    fill(case, size.warm_up + size.jobs, lambda _: NewJob(task=task, args="{}", max_attempts=MAX_ATTEMPTS))
    case.hang_up()
    raw = insert(case.dsn, size.jobs, size.at_once)
    facts = {"kind": kind, "concurrency": size.at_once}
    result = drain_warm(case, size.warm_up, size.jobs, facts, options=["--concurrency", str(size.at_once)])
    result.row.update({f"raw_{name}": value for name, value in raw.items()})
    result.row["of_raw"] = result.row["jobs_per_second"] / raw["rows_per_second"]
    return result


def _middle(label: str, rounds: list[Row]) -> Row:
    """The median of each figure; of the ratio as well, so each is of two runs that were neighbours."""
    row: Row = {}
    for name, value in rounds[0].items():
        values = [one[name] for one in rounds]
        row[name] = median(values) if all(isinstance(one, int | float) for one in values) else value
    return {**row, "case": label}


SCENARIO = BenchScenario(
    name="one-row",
    summary="handlers that insert one row and complete with it, beside insert and commit of psycopg alone",
    full=OneRowSize(),
    quick=OneRowSize(jobs=400, warm_up=20, rounds=1),
    cases=cases,
    columns=(
        "case jobs_per_second raw_rows_per_second of_raw client_cpu_us_per_job raw_client_cpu_us_per_row "
        "session_cpu_us_per_job raw_session_cpu_us_per_row lost"
    ),
)
