"""How many limited jobs two connections claim and complete in a second, also beside an old transaction.

    .venv/bin/python benchmarks/limits.py [--jobs 20000] [--pinned]

Each connection claims 250 and completes them in one call, as a worker does; the jobs do nothing.
"""

import argparse
import shutil
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import psycopg

from faultline.embedded import EmbeddedServer
from faultline.store.migrate import migrate

BATCH = 250
CONNECTIONS = 2
STEP = 5_000

CASES = {
    "no limit": None,
    "1 key, per_key 100": (1, "per_key => 100"),
    "1,000 keys, per_key 5": (1_000, "per_key => 5"),
    "1,000 keys, total 1,000": (1_000, "total => 1000"),
    "1,000 keys in order": (1_000, "per_key => 1"),
}

CLAIM = "select id, token from faultline.claim(array['default'], %s, '15 s', %s)"
COMPLETE = "select id, token from faultline.complete_many(%s, %s, %s, null)"
FILL = """
select count(*) from faultline.enqueue_many('work',
  array(select format('{{"key": "k%s"}}', n % {keys}) from generate_series(1, {jobs}) as n))
"""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--jobs", type=int, default=20_000)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--only", default="")
    asked.add_argument("--pinned", action="store_true", help="an old transaction stays open meanwhile")
    options = asked.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="faultline-limits-"))
    try:
        with EmbeddedServer.open(folder / "data", keep=False) as server:
            for turn in range(options.rounds):
                for name, case in CASES.items():
                    if options.only in name:
                        measure(server, f"case_{turn}", name, case, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(
    server: EmbeddedServer,
    database: str,
    name: str,
    case: tuple[int, str] | None,
    options: argparse.Namespace,
) -> None:
    """Drain one database with these limits, and print the speed of each 5,000 jobs."""
    server.create_database(database)
    dsn = server.dsn(database)
    migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn, psycopg.connect(dsn) as old:
        keys = 1
        if case is not None:
            keys, bounds = case
            conn.execute(f"select faultline.set_limit('work', {bounds})")
            conn.execute("select faultline.limit_task('work', 'work', array['key'])")
        conn.execute(FILL.format(keys=keys, jobs=options.jobs))
        if options.pinned:
            old.execute("select txid_current(), count(*) from faultline.settings")
        else:
            conn.execute("vacuum analyze faultline.active, faultline.later")
        speeds, cpu = drain(dsn, options.jobs)
        old.rollback()
        left = conn.execute(
            "select (select count(*) from faultline.active) + (select count(*) from faultline.later)"
        ).fetchone()
    assert left == (0,)
    steps = ", ".join(f"{speed:,.0f}" for speed in speeds[1:])
    print(f"{name:26} {speeds[0]:8,.0f}/s {cpu:6.1f} us CPU a job   per {STEP:,}: {steps}", flush=True)
    server.drop_database(database)


def drain(dsn: str, jobs: int) -> tuple[list[float], float]:
    """Jobs a second, in all and then for each step; and the server's CPU of the two connections, us a job."""
    done, marks, lock = 0, [time.perf_counter()], threading.Lock()
    cpu: list[int] = []

    def work() -> None:
        nonlocal done
        with psycopg.connect(dsn, autocommit=True) as conn:
            (pid,) = conn.execute("select pg_backend_pid()").fetchone() or (0,)
            while done < jobs:
                claim = uuid4()
                rows = conn.execute(CLAIM, [BATCH, claim]).fetchall()
                if not rows:
                    time.sleep(0.001)
                    continue
                left = rows
                while left:  # those that another claim has just looked at are busy for a moment
                    ids, tokens = zip(*left, strict=True)
                    left = conn.execute(COMPLETE, [list(ids), list(tokens), [claim] * len(left)]).fetchall()
                with lock:
                    done += len(rows)
                    if done // STEP >= len(marks):
                        marks.append(time.perf_counter())

            cpu.append(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]))

    def tend() -> None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            while done < jobs:
                for chore in ("floors", "raise_limit_floors"):
                    conn.execute(f"select faultline.{chore}()")
                time.sleep(0.5)

    threads = [threading.Thread(target=work) for _ in range(CONNECTIONS)] + [threading.Thread(target=tend)]
    for thread in threads:
        thread.start()
    for thread in threads[:CONNECTIONS]:
        thread.join()
    ended = time.perf_counter()
    threads[-1].join()
    speeds = [jobs / (ended - marks[0])] + [STEP / (b - a) for a, b in pairwise(marks)]
    return speeds, sum(cpu) / jobs / 1000


if __name__ == "__main__":
    main()
