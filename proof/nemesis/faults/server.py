"""Faults of the server: restarted, its sessions ended, its tables locked, its disk full, its clock moved."""

import asyncio
import random
import time
from datetime import timedelta
from typing import Final, Literal

import psycopg

from proof.nemesis.plan import Fault
from proof.nemesis.storm import Missed, Storm

STEP_SECONDS_MAX: Final = 10.0
LOCK_WAIT_SECONDS: Final = 5

SESSIONS: Final = """
select pid from pg_stat_activity
where datname = current_database() and application_name like 'faultline%' and pid <> pg_backend_pid()
order by pid
"""


async def backends(storm: Storm, fault: Fault) -> str:
    """End some sessions of workers and producers, from one to all of them."""
    dice = random.Random(fault.subject)

    def end() -> str:
        with storm.ground.connect() as conn:
            pids = [pid for (pid,) in conn.execute(SESSIONS).fetchall()]
            chosen = [pid for pid in pids if dice.random() < max(0.1, fault.chance)]
            for pid in chosen:
                conn.execute("select pg_terminate_backend(%s)", [pid])
            return f"{len(chosen)} of {len(pids)} sessions"

    return await asyncio.to_thread(end)


async def restart_immediate(storm: Storm, fault: Fault) -> str:
    return await _restart(storm, fault, "immediate")


async def restart_fast(storm: Storm, fault: Fault) -> str:
    return await _restart(storm, fault, "fast")


async def _restart(storm: Storm, fault: Fault, how: Literal["immediate", "fast"]) -> str:
    if storm.down.locked():
        raise Missed("the server was down already")
    async with storm.down:
        began = time.monotonic()
        await asyncio.to_thread(storm.ground.server.halt, how)
        await asyncio.sleep(fault.lasts)
        await asyncio.to_thread(storm.ground.bring_back)
        return f"{how}, away for {time.monotonic() - began:.1f} s"


async def lock(storm: Storm, fault: Fault) -> str:
    """A bad migration: no session can read or write the table of active jobs."""

    def hold() -> None:
        with storm.ground.connect() as conn, conn.transaction():
            conn.execute("select set_config('lock_timeout', %s, true)", [f"{LOCK_WAIT_SECONDS}s"])
            conn.execute("lock table faultline.active in access exclusive mode")
            conn.execute("select pg_sleep(%s)", [fault.lasts])

    await asyncio.to_thread(hold)
    return f"for {fault.lasts:.1f} s"


async def old_transaction(storm: Storm, fault: Fault) -> str:
    """A session that has written a row, and then stays idle in its transaction."""

    def hold() -> None:
        with storm.ground.connect() as conn, conn.transaction():
            conn.execute("set local idle_in_transaction_session_timeout = 0")
            conn.execute("select pg_current_xact_id(), count(*) from faultline.active")
            time.sleep(fault.lasts)
            conn.execute("select 1")

    await asyncio.to_thread(hold)
    return f"for {fault.lasts:.1f} s"


async def disk_full(storm: Storm, fault: Fault) -> str:
    if storm.ground.disk is None:
        raise Missed("no disk of our own")
    try:
        async with storm.down:  # not while the server recovers: on a full disk it would give up
            await asyncio.to_thread(storm.ground.fill_disk, True)
        refused = await asyncio.to_thread(_refused, storm)
        await asyncio.sleep(fault.lasts)
    finally:
        await asyncio.to_thread(storm.ground.fill_disk, False)
    return f"for {fault.lasts:.1f} s, {refused}"


def _refused(storm: Storm) -> str:
    """Whether the server itself says that its disk is full: a fault without effect would be none."""
    try:
        with storm.ground.connect() as conn:
            conn.execute(
                "create table storm.ballast as select repeat('x', 1000) from generate_series(1, 9000)"
            )
            conn.execute("drop table storm.ballast")
    except psycopg.errors.DiskFull:
        return "the server says 53100"
    except psycopg.Error as trouble:
        return f"the server says {type(trouble).__name__}"
    raise Missed("there was still room")


async def clock_step(storm: Storm, fault: Fault) -> str:
    by = timedelta(seconds=round((fault.chance * 2 - 1) * STEP_SECONDS_MAX, 1))
    await asyncio.to_thread(storm.ground.step_clock, by)
    await asyncio.sleep(fault.lasts)
    await asyncio.to_thread(storm.ground.step_clock, timedelta(0))
    return f"{by.total_seconds():+.1f} s for {fault.lasts:.1f} s"


ACTS: Final = {
    "backends": backends, "restart-immediate": restart_immediate, "restart-fast": restart_fast, "lock": lock,
    "old-transaction": old_transaction, "disk-full": disk_full, "clock-step": clock_step,
}  # fmt: skip
