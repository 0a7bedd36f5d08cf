"""What no process may leave behind: processes, connections, open transactions, tracebacks, unasked ends."""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from proof.nemesis.arena import Arena
from proof.nemesis.crew import left_behind
from proof.nemesis.ground import Reachable
from proof.nemesis.oracle import EXAMPLES_MAX, Finding

GONE_SECONDS_MAX: Final = 10.0
SESSIONS: Final = """
select format('%s (%s), %s', application_name, pid, state) from pg_stat_activity
where datname = current_database() and application_name like 'faultline%'
"""
IDLE_LONG: Final = """
select format('%s (%s) is idle in a transaction since %s', application_name, pid, state_change)
from pg_stat_activity
where datname = current_database() and state like 'idle in transaction%'
  and state_change < clock_timestamp() - interval '5 seconds' and application_name <> 'nemesis'
"""


def within_budget(arena: Arena) -> Finding:
    """No worker holds more connections than its documented budget, once everything is healed."""
    over: list[str] = []
    for post in arena.crew:
        pairs, most = post.link.pairs, post.orders.connections_max
        if len(pairs) > most:
            over += [f"{post.name} holds {len(pairs)} connections, {most} at most", *sorted(map(str, pairs))]
    looked_at = sum(len(post.link.pairs) for post in arena.crew)
    says = "a worker holds no more connections than its budget"
    return Finding("ConnectionBudget", says, not over, looked_at, tuple(over))


def idle_transactions(ground: Reachable) -> Finding:
    with ground.connect() as conn:
        found = tuple(told for (told,) in conn.execute(IDLE_LONG).fetchall())
        (sessions,) = conn.execute("select count(*) from pg_stat_activity").fetchone() or (0,)
    return Finding(
        "NoIdleTransaction", "no transaction is left open", not found, sessions, found[:EXAMPLES_MAX]
    )


async def nothing_left(arena: Arena, ground: Reachable) -> list[Finding]:
    """After all were asked to leave: no process is there, and no session is connected."""
    until = time.monotonic() + GONE_SECONDS_MAX
    processes: dict[int, str] = {}
    sessions: list[str] = []
    while time.monotonic() < until:
        processes = left_behind(arena.run)
        with ground.connect() as conn:
            sessions = [told for (told,) in conn.execute(SESSIONS).fetchall()]
        if not processes and not sessions:
            break
        await asyncio.sleep(0.2)
    starts = sum(post.starts for post in arena.posts.values())
    orphans = tuple(f"process {pid}: {command[:120]}" for pid, command in processes.items())
    return [
        Finding("NoOrphan", "no process is left behind", not orphans, starts, orphans[:EXAMPLES_MAX]),
        Finding(
            "NoLeak", "no connection is left behind", not sessions, starts, tuple(sessions[:EXAMPLES_MAX])
        ),
    ]


def good_order(arena: Arena, ground: Reachable, codes: Mapping[str, int | None]) -> Finding:
    """No worker ended unasked, and each that was asked left with everything settled.

    A worker that cannot reach the database as it starts says so and ends. One that is known there already
    waits for the database to come back.
    """
    with ground.connect() as conn:
        known = {
            name.split("/")[0] for (name,) in conn.execute("select name from faultline.workers").fetchall()
        }
    against = [
        f"{name} ended by itself with code {code}"
        for post in arena.crew
        for name, code in post.unasked.items()
        if name in known
    ]
    against += [f"{name} left with code {code}" for name, code in codes.items() if code != 0]
    starts = sum(post.starts for post in arena.posts.values())
    says = "no worker ends by itself, and each leaves in good order when asked"
    return Finding("GoodOrder", says, not against, starts, tuple(against[:EXAMPLES_MAX]))


def tracebacks(files: Iterable[Path]) -> Finding:
    """Every line of every log is a line of JSON, and none of them carries an unexpected traceback."""
    lines, against = 0, []
    for file in files:
        for line in file.read_text(errors="replace").splitlines():
            lines += 1
            if told := unexpected(line):
                against.append(f"{file.stem}: {told}")
    says = "no unhandled traceback is in a worker's log"
    return Finding("NoTraceback", says, not against, lines, tuple(against[:EXAMPLES_MAX]))


def unexpected(line: str) -> str | None:
    """Why a line of a worker's log is not as it should be, or None."""
    try:
        said: dict[str, Any] = json.loads(line)
    except ValueError:
        return line[:200] if "Traceback" in line or "Error" in line else None
    if said.get("level") == "critical" or "Traceback" in str(said.get("error", "")):
        last = str(said.get("error", "")).strip().splitlines()[-1:] or [""]
        return f"{said.get('message', said.get('event', ''))}: {last[0]}"[:200]
    return None
