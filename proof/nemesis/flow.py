"""Limits, order, rates and schedules, held against what the run left behind. Pure, but for `gather`.

Leases are ordered by tokens: the clock jumps in a storm. The run gives each entry of the ledger a number of
the same sequence as it is written (ground.py), and a claim draws its token after it has admitted. So a lease
that took the slot of another has a token above the number at which that other ended.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from proof.nemesis.app import LIMITS, SCHEDULES, SKIPPING

LEASES: Final = """
select entry.job_id, entry.task::text, coalesce(job.args ->> 'account', ''), entry.token, entry.written
from faultline.ledger as entry
join faultline.jobs as job on job.id = entry.job_id
where entry.task = any (%s) and entry.claim is not null
"""
GRANTS: Final = """
select known.name::text, count(*)::int, min(noted.up - noted.waited), max(noted.up),
       extract(epoch from max(noted.at))::float8
from storm.grants as noted
join faultline.limits as known on known.id = noted.limit_id
group by known.name, noted.granted_by
order by max(noted.up)
"""
OCCURRENCES: Final = "select schedule, extract(epoch from at)::float8, job_id, how from faultline.occurrences"
TICKS: Final = "select id, args ->> 'schedule' from faultline.jobs where task = 'tick'"

SLACK_SECONDS: Final = 0.1
"""The kernel tells the time since its start in hundredths of a second."""


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease of a limited job, from its token to the number at which its end was written."""

    job: int
    task: str
    key: str
    token: int
    ended: int


@dataclass(frozen=True, slots=True)
class Grant:
    """Jobs that one transaction let past a rate, at a moment from `since` to `until`."""

    limit: str
    many: int
    since: float
    until: float
    clock: float
    """The database's own clock at `until`, which the storm may have moved."""


@dataclass(frozen=True, slots=True)
class Noted:
    """An occurrence of a schedule, and its job if it has one."""

    schedule: str
    at: float
    job: int | None
    how: str = "due"


@dataclass(frozen=True)
class Flow:
    """What limits and schedules left behind."""

    leases: Sequence[HeldLease] = ()
    grants: Sequence[Grant] = ()
    """In the order in which they were made."""
    occurrences: Sequence[Noted] = ()
    ticks: Mapping[int, str] = field(default_factory=dict)
    """The jobs of schedules, each with the name of its schedule."""


def gather(conn: psycopg.Connection[Any]) -> Flow:
    """Read what the checks need from the database."""
    return Flow(
        leases=[HeldLease(*row) for row in conn.execute(LEASES, [list(LIMITS)]).fetchall()],
        grants=[Grant(*row) for row in conn.execute(GRANTS).fetchall()],
        occurrences=[Noted(*row) for row in conn.execute(OCCURRENCES).fetchall()],
        ticks=dict(conn.execute(TICKS).fetchall()),
    )


def checks(flow: Flow) -> Iterator[tuple[str, int, Iterator[str]]]:
    """The name of each check, how much it looks at, and what contradicts it."""
    strict = [lease for lease in flow.leases if LIMITS[lease.task].per_key == 1]
    metered = [grant for grant in flow.grants if LIMITS[grant.limit].rate is not None]
    yield "LimitHolds", len(flow.leases), _limits(flow.leases)
    yield "OrderHolds", len(strict), _order(strict)
    yield "RateHolds", sum(grant.many for grant in metered), _rates(metered)
    yield "OccurrenceIsOne", len(flow.occurrences), _occurrences(flow)


def _by(leases: Iterable[HeldLease], name: Callable[[HeldLease], str]) -> dict[str, list[HeldLease]]:
    """Leases in groups, each in the order of their tokens."""
    groups: dict[str, list[HeldLease]] = defaultdict(list)
    for lease in sorted(leases, key=lambda lease: (lease.token, lease.job)):
        groups[name(lease)].append(lease)
    return groups


def most_at_once(leases: Iterable[HeldLease]) -> tuple[int, HeldLease | None]:
    """The most leases that were held together, and the one that made them so many."""
    moments = [each for lease in leases for each in ((lease.token, 1, lease), (lease.ended, -1, lease))]
    held, most, last = 0, 0, None
    for _, step, lease in sorted(moments, key=lambda moment: (moment[0], moment[1])):
        held += step
        if held > most:
            most, last = held, lease
    return most, last


def _limits(leases: Sequence[HeldLease]) -> Iterator[str]:
    for task, limited in _by(leases, lambda lease: lease.task).items():
        limit = LIMITS[task]
        yield from _above(limited, limit.total, f"limit {task}")
        for key, its in _by(limited, lambda lease: lease.key).items():
            yield from _above(its, limit.per_key, f"key {key} of limit {task}")


def _above(leases: Sequence[HeldLease], allowed: int | None, where: str) -> Iterator[str]:
    most, last = most_at_once(leases)
    if allowed is not None and last is not None and most > allowed:
        yield f"{where} had {most} leases at once, {allowed} at most, with job {last.job} token {last.token}"


def _order(leases: Sequence[HeldLease]) -> Iterator[str]:
    for task, limited in _by(leases, lambda lease: lease.task).items():
        blocks = LIMITS[task].on_retry == "block"
        for key, its in _by(limited, lambda lease: lease.key).items():
            # Where a retry yields, others go before it: then only first starts are in order.
            first = {lease.job: lease for lease in reversed(its)}.values()
            starts = its if blocks else sorted(first, key=lambda lease: lease.token)
            for before, after in itertools.pairwise(starts):
                if after.job < before.job:
                    yield (
                        f"key {key} of {task}: job {after.job} started with token {after.token}, "
                        f"after job {before.job} with token {before.token}"
                    )


def _rates(grants: Sequence[Grant]) -> Iterator[str]:
    for name in sorted({grant.limit for grant in grants}):
        rate = LIMITS[name].per_second
        assert rate is not None
        burst = LIMITS[name].burst or max(1.0, rate)
        yield from _above_rate(name, [grant for grant in grants if grant.limit == name], rate, burst)


def _above_rate(name: str, grants: Sequence[Grant], rate: float, burst: float) -> Iterator[str]:
    """The stretch of time, up to each grant, that has the most jobs beyond rate x time."""
    beyond, before = -math.inf, grants[0]
    for grant in grants:
        # A clock that was set forward fills the bucket; one that was set back leaves the true time.
        passed = max(grant.until - before.until, grant.clock - before.clock)
        # The lock was free at the end of the grant before, at the earliest.
        since = grant.since if grant is before else max(grant.since, before.until)
        beyond = grant.many + max(beyond - rate * passed, -rate * (grant.until - since))
        if beyond > burst + rate * SLACK_SECONDS:
            yield (
                f"rate {name} let {beyond:.1f} jobs pass beyond rate x time, {burst:g} at most, "
                f"by {grant.until:.2f} s"
            )
        before = grant


def _occurrences(flow: Flow) -> Iterator[str]:
    named: dict[int, Noted] = {}
    for noted in flow.occurrences:
        if noted.job is None:
            if noted.schedule not in SKIPPING:
                yield f"schedule {noted.schedule} left out {noted.at:.0f}, though its jobs may overlap"
            continue
        if noted.job not in flow.ticks:
            yield f"schedule {noted.schedule} names job {noted.job} for {noted.at:.0f}, which is nowhere"
        if noted.job in named:
            yield f"job {noted.job} is that of {noted.at:.0f} and of {named[noted.job].at:.0f}"
        named[noted.job] = noted
    for job, schedule in flow.ticks.items():
        if job not in named or named[job].schedule != schedule:
            yield f"job {job} was enqueued by schedule {schedule}, and is that of none of its occurrences"
    for schedule, period in SCHEDULES.items():
        times = sorted(noted.at for noted in flow.occurrences if noted.schedule == schedule)
        for before, after in itertools.pairwise(times):
            if round((after - before) / period) != 1:
                yield f"schedule {schedule} has nothing between {before:.1f} and {after:.1f}"


SAYS: Final[Mapping[str, str]] = {
    "LimitHolds": "a limit never has more leases at once than it allows, in total and for each key",
    "OrderHolds": "jobs of a key in strict order start in the order of their ids",
    "RateHolds": "in any time, no more jobs pass a rate than its burst and rate x time",
    "OccurrenceIsOne": "each occurrence of a schedule is one job or noted as skipped, and none is missing",
}
