"""What schedules cost: idle, and when very many are due in one second.

python -m benchmarks.schedules [--schedules 10000] [--seconds 20]

A private PostgreSQL with fsync on, one watchdog's chore in this process. CPU is that of its session and of
this process, read from the kernel.
"""

import asyncio
import os
import resource
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import psycopg

from faultline.embedded import EmbeddedServer
from faultline.store.migrate import migrate
from faultline.store.session import DbSession
from faultline.watchdog.scheduling import Scheduling

TICK = timedelta(seconds=1)

MAKE = """
insert into faultline.schedules (name, task, queue, priority, args, max_attempts, cron, time_zone, starts_at,
  next_at, created_at, changed_at)
select 'schedule-' || n, 'report', 'default', 0, '{"customer": 7}', 10, '0 * * * *', 'Europe/Berlin', now(),
       now() + interval '2 hours', now(), now()
from generate_series(1, %s) as n
"""

SESSION = "select pid from pg_stat_activity where query like '%%due_schedules%%' and pid <> pg_backend_pid()"


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def idle(line: DbSession, conn: psycopg.Connection[Any], seconds: float) -> tuple[float, float]:
    """The share of a core that looking takes, of the server's session and of this process."""
    chore = Scheduling(line, TICK, lambda: True)
    await chore()
    (pid,) = conn.execute(SESSION).fetchone() or (0,)
    began, ours, theirs = time.monotonic(), own_cpu(), cpu_of(pid)
    while time.monotonic() < began + seconds:  # noqa: ASYNC110 - the chore says when it comes again
        await asyncio.sleep(await chore() or 1.0)
    took = time.monotonic() - began
    return (cpu_of(pid) - theirs) / took, (own_cpu() - ours) / took


async def burst(line: DbSession, conn: psycopg.Connection[Any], count: int) -> float:
    """Seconds until all schedules, due at one moment, have their jobs."""
    conn.execute("update faultline.schedules set next_at = date_trunc('second', now())")
    conn.execute("vacuum analyze faultline.schedules")
    conn.execute("truncate faultline.active, faultline.occurrences")
    began = time.monotonic()
    await Scheduling(line, TICK, lambda: True)()
    took = time.monotonic() - began
    (made,) = conn.execute("select count(*) from faultline.active").fetchone() or (0,)
    assert made == count, f"{made} of {count} jobs"
    return took


async def measure(dsn: str, count: int, seconds: float) -> None:
    line = DbSession(dsn)
    try:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("select faultline.lane_of('default', 0)")
            conn.execute(MAKE, [count])
            conn.execute("vacuum analyze faultline.schedules")
            server, ours = await idle(line, conn, seconds)
            print(f"idle, {count:,} schedules: server {server:.2%} of a core, watchdog {ours:.2%}")
            took = [await burst(line, conn, count) for _ in range(3)]
            times = ", ".join(f"{one:.2f}" for one in took)
            print(
                f"{count:,} due in one second: {statistics.median(took):.2f} s until all are enqueued "
                f"({times})"
            )
    finally:
        await line.close()


@click.command()
@click.option("--schedules", "count", default=10_000, show_default=True)
@click.option("--seconds", default=20.0, show_default=True)
def main(count: int, seconds: float) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedServer.open(Path(folder) / "data", keep=False) as server,
    ):
        dsn = server.dsn("postgres")
        migrate(dsn)
        asyncio.run(measure(dsn, count, seconds))


if __name__ == "__main__":
    main()
