"""How every phase ends: the queue drains within its bound, all processes leave, and the checker looks."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg

from proof.nemesis import leftovers, oracle
from proof.nemesis.arena import Arena
from proof.nemesis.ground import Reachable
from proof.nemesis.oracle import Facts, Finding

DRAIN_SECONDS: Final = 30.0
"""How long a healed queue may take to be empty, beyond what its jobs were told to wait."""
SETTLE_SECONDS: Final = 2.0
LOOK_EVERY_SECONDS: Final = 0.1

# A schedule is stopped once it has caught up: one that no watchdog fires any more is never empty.
STOP_SCHEDULES: Final = """
select count(faultline.pause_schedule(name, 'the storm is over')) from faultline.schedules
where paused_at is null and next_at > faultline.now() - interval '5 seconds'
"""
LEFT: Final = """
select (select count(*) from faultline.jobs where state in ('queued', 'running'))
     + (select count(*) from faultline.schedules where paused_at is null)
"""
LONGEST_WAIT: Final = """
select coalesce(extract(epoch from max(run_at) - faultline.now()), 0)::float from faultline.later
"""

Tell = Callable[[str, float], None]
"""Hears what is going on, and which part of the whole is done."""


async def drain(ground: Reachable, tell: Tell) -> tuple[Finding, float]:
    """Wait until nothing is left to do, and no longer than the bound; how long it took."""
    began, bound, left = time.monotonic(), None, None
    while left != 0 and time.monotonic() < began + (bound or DRAIN_SECONDS):
        with contextlib.suppress(psycopg.Error):
            bound = bound or DRAIN_SECONDS + max(0.0, await asyncio.to_thread(_ask, ground, LONGEST_WAIT))
            await asyncio.to_thread(_ask, ground, STOP_SCHEDULES)
            left = await asyncio.to_thread(_ask, ground, LEFT)
            tell(f"healing: {left} jobs and schedules left", 1.0)
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    took = time.monotonic() - began
    told = () if left == 0 else (f"{left} jobs and schedules were left after {took:.1f} s",)
    within = f"within {bound or DRAIN_SECONDS:.0f} s (it took {took:.1f} s)"
    says = f"schedules catch up and the healed queue is empty {within}"
    return Finding("Drains", says, left == 0, 1, told), took


def _ask(ground: Reachable, question: str) -> Any:
    with ground.connect() as conn:
        row = conn.execute(question.encode()).fetchone()
        assert row is not None
        return row[0]


async def close_up(stage: Arena, ground: Reachable, **known: Any) -> tuple[Facts, list[Finding]]:
    """Ask all processes to leave, then look at what is left: rows, processes, connections, logs."""
    await asyncio.sleep(SETTLE_SECONDS)
    before = [leftovers.within_budget(stage), leftovers.idle_transactions(ground)]
    codes = await stage.stop_crew()
    keys = {job: frozenset(keys) for job, keys in stage.sink.keys.items()}
    with ground.connect() as conn:
        facts = oracle.gather(conn, stage.read_notes(), keys=keys, **known)
        findings = [*oracle.audited(conn, facts), *oracle.judge(facts)]
    findings += [*before, leftovers.good_order(stage, ground, codes)]
    findings += await leftovers.nothing_left(stage, ground)
    findings.append(leftovers.tracebacks(stage.folder.glob("*.log")))
    return facts, findings
