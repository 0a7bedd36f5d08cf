"""One run: a storm over a crew, then healing with a bound, then the checker; then the same over failovers."""

import asyncio
import contextlib
import platform
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg

import faultline
from proof.nemesis import leftovers, oracle
from proof.nemesis.arena import Arena, Wanted, arena
from proof.nemesis.ground import Ground, ground
from proof.nemesis.mutants import break_database
from proof.nemesis.oracle import Finding
from proof.nemesis.plan import EVERY_MINUTE, EVERY_RUN, draw
from proof.nemesis.play import play
from proof.nemesis.storm import Storm, Struck
from proof.nemesis.watch import Sample, Watch

DRAIN_SECONDS: Final = 30.0
"""How long a healed queue may take to be empty, beyond what its jobs were told to wait."""
SETTLE_SECONDS: Final = 2.0
LEFT: Final = "select count(*) from faultline.jobs where state in ('queued', 'running')"
LONGEST_WAIT: Final = """
select coalesce(extract(epoch from max(run_at) - faultline.now()), 0)::float from faultline.later
"""

Tell = Callable[[str, float], None]
"""Hears what is going on, and which part of the whole is done."""


@dataclass
class Outcome:
    """Everything a run found; the report is made of it."""

    wanted: Wanted
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)
    phases: list[tuple[str, float, float]] = field(default_factory=list)
    struck: list[Struck] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    sometimes: dict[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @property
    def broken(self) -> list[Finding]:
        return [finding for finding in self.findings if not finding.holds]

    @property
    def never(self) -> list[str]:
        """What must happen at least once, and did not."""
        return [name for name, count in self.sometimes.items() if not count]

    @property
    def verdict(self) -> str:
        """`broken` if anything is, `void` if too little happened to tell, else `kept`."""
        return "broken" if self.broken else "void" if self.never else "kept"


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
            watch = Watch(stage, made, storm.began)
            watching = [asyncio.create_task(watch.sample()), asyncio.create_task(watch.look())]
            try:
                await _safety(storm, watch, outcome, tell)
                await _heal(storm, watch, outcome, tell)
            finally:
                for task in watching:
                    task.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
                watch.close()
            outcome.struck, outcome.samples = sorted(storm.struck, key=lambda s: s.began), watch.samples
            await _check(storm, watch, outcome, tell)
    return outcome


async def _safety(storm: Storm, watch: Watch, outcome: Outcome, tell: Tell) -> None:
    wanted = outcome.wanted
    length = wanted.minutes * 60
    faults = draw(wanted.seed, wanted.minutes, without=outcome.lacks)
    ticking = asyncio.create_task(_tick(storm, watch, length, tell))
    try:
        await play(storm, faults, length, watch.broken)
    finally:
        ticking.cancel()
    outcome.phases.append(("storm", 0.0, storm.now()))
    if watch.first_broken:
        outcome.remarks.append(f"seen while the storm went on: {watch.first_broken}")


async def _tick(storm: Storm, watch: Watch, length: float, tell: Tell) -> None:
    while True:
        done = next((sample for sample in reversed(watch.samples) if sample.succeeded is not None), None)
        told = f"{done.succeeded} done, {done.reaped} reaped, {done.refused} refused" if done else "starting"
        now = ", ".join(sorted(storm.under_way.values())) or "calm"
        tell(f"{told}; {len(storm.struck)} faults; {now}", min(1.0, storm.now() / length))
        await asyncio.sleep(0.25)


async def _heal(storm: Storm, watch: Watch, outcome: Outcome, tell: Tell) -> None:
    """Faults stop; the queue has to be empty within the bound."""
    began = storm.now()
    await storm.heal()
    await storm.arena.stop_producers()
    with storm.ground.connect() as conn:
        (wait,) = conn.execute(LONGEST_WAIT).fetchone() or (0.0,)
    bound = DRAIN_SECONDS + max(0.0, wait)
    until, left = time.monotonic() + bound, None
    while time.monotonic() < until and left != 0:
        with contextlib.suppress(*storm.TROUBLE):
            left = await storm.ask(LEFT)
            tell(f"healing: {left} jobs left", 1.0)
        await asyncio.sleep(0.1)
    took = storm.now() - began
    says = f"the healed queue is empty within {bound:.0f} s"
    told = () if left == 0 else (f"{left} jobs were left after {took:.1f} s",)
    outcome.findings.append(Finding("Drains", says, left == 0, 1, told))
    outcome.counts["seconds to drain"] = round(took)
    outcome.phases.append(("heal", began, storm.now()))


async def _check(storm: Storm, watch: Watch, outcome: Outcome, tell: Tell) -> None:
    stage = storm.arena
    tell("checking", 1.0)
    await asyncio.sleep(SETTLE_SECONDS)
    outcome.findings.append(leftovers.within_budget(stage))
    outcome.findings.append(leftovers.idle_transactions(storm.ground))
    codes = await stage.stop_crew()
    notes = stage.read_notes()
    keys = {job: frozenset(keys) for job, keys in stage.sink.keys.items()}
    with storm.ground.connect() as conn:
        facts = oracle.gather(conn, notes, keys=keys, ends_seen=watch.ends)
        outcome.findings[:0] = [*oracle.audited(conn, oracle.acknowledged(notes)), *oracle.judge(facts)]
        count(conn, storm, facts, outcome)
    outcome.findings.append(leftovers.good_order(stage, codes))
    outcome.findings += list(await leftovers.nothing_left(stage, storm.ground))
    outcome.findings.append(leftovers.tracebacks(stage.folder.glob("*.log")))


COUNTED: Final = """
select 'attempts ' || outcome, count(*) from faultline.ledger group by outcome
union all select 'jobs ' || state, count(*) from faultline.jobs group by state
union all select 'late writes refused', coalesce(sum(times), 0) from faultline.refusals
union all select 'refused: ' || reason, coalesce(sum(times), 0) from faultline.refusals group by reason
union all select 'effects', count(*) from storm.effects
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
        "a lease was reaped": counted.get("attempts expired", 0),
        "a job succeeded after its lease was reaped": _succeeded_late(conn),
    }
    done = {struck.kind for struck in storm.struck if not struck.missed}
    outcome.sometimes |= {f"fault: {kind}": int(kind in done) for kind in _expected(outcome)}


def _succeeded_late(conn: psycopg.Connection[Any]) -> int:
    (many,) = conn.execute(
        "select count(*) from faultline.ledger as entry where entry.outcome = 'succeeded' and entry.crashes > 0"
    ).fetchone() or (0,)
    return int(many)


def _expected(outcome: Outcome) -> Iterator[str]:
    """Kinds that every run plans, and that this machine allows: none of them may have been missed always."""
    yield from (kind for kind in dict.fromkeys((*EVERY_MINUTE, *EVERY_RUN)) if kind not in outcome.lacks)


def versions(made: Ground) -> dict[str, str]:
    return {
        "faultline": faultline.__version__,
        "PostgreSQL": made.server.version,
        "Python": platform.python_version(),
        "psycopg": psycopg.__version__,
        "kernel": platform.release(),
    }
