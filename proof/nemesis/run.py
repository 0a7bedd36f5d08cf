"""One run: a storm over a crew, then healing with a bound, then the checker; then the same over failovers."""

import asyncio
import platform
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg

import faultline
from proof.nemesis import oracle
from proof.nemesis.app import LIMITS
from proof.nemesis.arena import Wanted, arena
from proof.nemesis.closing import Tell, close_up, drain
from proof.nemesis.flow import most_at_once
from proof.nemesis.ground import NemesisDatabase, ground
from proof.nemesis.mutants import break_database
from proof.nemesis.outcome import Outcome
from proof.nemesis.plan import EVERY_MINUTE, EVERY_RUN, draw
from proof.nemesis.play import play
from proof.nemesis.storm import Storm
from proof.nemesis.watch import NemesisSampler

START_SECONDS_MAX: Final = 60.0
CONNECTIONS_AT_WORK: Final = 4
DONE_AT_WORK: Final = 20


async def storm_over(wanted: Wanted, folder: Path, tell: Tell) -> Outcome:
    """The storm: faults for so many minutes, then healing, then the checker."""
    outcome = Outcome(wanted)
    with ground() as made:
        outcome.lacks = made.lacks
        outcome.versions = versions(made)
        if wanted.mutant:
            break_database(made.dsn, wanted.mutant)
        run = secrets.token_hex(6)
        async with arena(wanted, run, folder, lambda: made.dsn) as stage:
            storm = Storm(stage, made)
            watch = NemesisSampler(stage, made, storm.began)
            watching = [asyncio.create_task(watch.sample()), asyncio.create_task(watch.look())]
            try:
                await _safety(storm, watch, outcome, tell)
                await _heal(storm, outcome, tell)
            finally:
                for task in watching:
                    task.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
                watch.close()
            outcome.struck, outcome.samples = sorted(storm.struck, key=lambda s: s.began), watch.samples
            await _check(storm, watch, outcome, tell)
    return outcome


async def _safety(storm: Storm, watch: NemesisSampler, outcome: Outcome, tell: Tell) -> None:
    wanted = outcome.wanted
    length = wanted.minutes * 60
    await _at_work(storm, watch, tell)
    faults = draw(wanted.seed, wanted.minutes, without=outcome.lacks)
    ticking = asyncio.create_task(_tick(storm, watch, length, tell))
    try:
        await play(storm, faults, length, watch.broken)
    finally:
        ticking.cancel()
    outcome.phases.append(("storm", 0.0, storm.now()))
    if watch.first_broken:
        outcome.remarks.append(f"seen while the storm went on: {watch.first_broken}")


async def _at_work(storm: Storm, watch: NemesisSampler, tell: Tell) -> None:
    """Faults begin when all workers work: on a busy machine a crew needs a while to start."""
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        manned = sum(len(post.link.pairs) >= CONNECTIONS_AT_WORK for post in storm.arena.crew)
        done = watch.samples[-1].succeeded or 0 if watch.samples else 0
        tell(f"starting: {manned} of {len(storm.arena.crew)} workers, {done} jobs done", 0.0)
        if manned == len(storm.arena.crew) and done >= DONE_AT_WORK:
            break
        await asyncio.sleep(0.1)
    storm.began = watch.began = time.monotonic()
    watch.samples.clear()


async def _tick(storm: Storm, watch: NemesisSampler, length: float, tell: Tell) -> None:
    while True:
        done = next((sample for sample in reversed(watch.samples) if sample.succeeded is not None), None)
        told = f"{done.succeeded} done, {done.reaped} reaped, {done.refused} refused" if done else "starting"
        now = ", ".join(sorted(storm.under_way.values())) or "calm"
        tell(f"{told}; {len(storm.struck)} faults; {now}", min(1.0, storm.now() / length))
        await asyncio.sleep(0.25)


async def _heal(storm: Storm, outcome: Outcome, tell: Tell) -> None:
    """Faults stop; the queue has to be empty within the bound."""
    began = storm.now()
    await storm.heal()
    await storm.arena.stop_producers()
    drained, took = await drain(storm.ground, tell)
    outcome.findings.append(drained)
    outcome.counts["seconds to drain"] = round(took)
    outcome.phases.append(("heal", began, storm.now()))


async def _check(storm: Storm, watch: NemesisSampler, outcome: Outcome, tell: Tell) -> None:
    tell("checking", 1.0)
    try:
        facts, findings = await close_up(storm.arena, storm.ground, ends_seen=watch.ends)
        outcome.findings[:0] = findings
        with storm.ground.connect() as conn:
            count(conn, storm, facts, outcome)
    except psycopg.OperationalError as gone:
        outcome.remarks.append(f"the storm's own server was gone when the checker came: {gone}")
        outcome.sometimes["the server was there in the end"] = 0


COUNTED: Final = """
select 'attempts ' || outcome, count(*) from faultline.ledger group by outcome
union all select 'jobs ' || state, count(*) from faultline.jobs group by state
union all select 'late writes refused', coalesce(sum(times), 0) from faultline.refusals
union all select 'refused: ' || reason, coalesce(sum(times), 0) from faultline.refusals group by reason
union all select 'effects', count(*) from storm.effects
union all select 'occurrences ' || how, count(*) from faultline.occurrences group by how
union all select 'jobs that were given a slot', count(*) from storm.grants
union all select 'most attempts at a job', coalesce(max(attempt), 0) from faultline.ledger
union all select 'highest token', coalesce(max(token), 0) from faultline.ledger
"""


def count(conn: psycopg.Connection[Any], storm: Storm, facts: oracle.Facts, outcome: Outcome) -> None:
    """How often each thing happened, and what has to happen at least once."""
    counted = {name: int(many) for name, many in conn.execute(COUNTED).fetchall()}
    sink = storm.arena.sink
    for note in facts.notes:
        word = f"producers told {note['said']}"
        counted[word] = counted.get(word, 0) + 1
    counted |= {f"reply lost: {said}": many for said, many in storm.counts.replies.items()}
    counted |= {"cut before it arrived": storm.counts.cut, "calls to the sink": sink.calls,
                "repeated to the sink": sink.repeated, "stale at the sink": sink.stale,
                "workers started": sum(post.starts for post in storm.arena.posts.values())}  # fmt: skip
    outcome.counts |= dict(sorted(counted.items()))
    outcome.sometimes |= {
        "a stale write was refused": counted.get("late writes refused", 0),
        "a commit was unknown": storm.counts.unknown_commits,
        "the commit of a handler's transaction was unknown": storm.counts.workers_commits,
        "a lease was reaped": counted.get("attempts expired", 0),
        "a job succeeded after its lease was reaped": _succeeded_late(conn),
        "a limit was reached": _limits_reached(facts),
        "an occurrence was enqueued": counted.get("occurrences due", 0),
    }
    done = {struck.kind for struck in storm.struck if not struck.missed}
    outcome.sometimes |= {f"fault: {kind}": int(kind in done) for kind in _expected(outcome)}


def _limits_reached(facts: oracle.Facts) -> int:
    """How many limits had all their leases at once: below it they show little."""
    totals = {task: limit.total for task, limit in LIMITS.items() if limit.total}
    return sum(
        most_at_once(lease for lease in facts.flow.leases if lease.task == task)[0] >= total
        for task, total in totals.items()
    )


def _succeeded_late(conn: psycopg.Connection[Any]) -> int:
    (many,) = conn.execute(
        "select count(*) from faultline.ledger as entry "
        "where entry.outcome = 'succeeded' and entry.crashes > 0"
    ).fetchone() or (0,)
    return int(many)


def _expected(outcome: Outcome) -> Iterator[str]:
    """Kinds that every run plans, and that this machine allows: none of them may have been missed always."""
    yield from (kind for kind in dict.fromkeys((*EVERY_MINUTE, *EVERY_RUN)) if kind not in outcome.lacks)


def versions(made: NemesisDatabase) -> dict[str, str]:
    return {
        "faultline": faultline.__version__,
        "PostgreSQL": made.server.version,
        "Python": platform.python_version(),
        "psycopg": psycopg.__version__,
        "kernel": platform.release(),
    }
