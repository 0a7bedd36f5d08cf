"""Faultline as its users run it: `faultline worker`, `aenqueue` and `aenqueue_many`."""

import os
import subprocess
import sys
from collections.abc import Sequence

from _adapter import DSN, HERE, INSERT, MODE, ONE_ROW, RECOVERY, USUAL, Payload, Probe, System, main

from faultline import Faultline, Transaction

PROBE = Probe()
app = Faultline(DSN or None)


if MODE == "one_row":

    @app.task(name="bench")
    async def bench(tx: Transaction, seq: int, kind: str, pad: str) -> None:
        PROBE.start({"seq": seq})
        await tx.execute(INSERT, (seq, os.getpid()))

else:

    @app.task(name="bench")
    async def bench(seq: int, kind: str, pad: str) -> None:
        await PROBE.handle({"seq": seq})


class FaultlineKeepingAll(System):
    name = "faultline"
    packages = ["faultline-queue", "psycopg", "uvloop"]
    settings = (
        "`faultline worker` with its defaults: 10 jobs at once, pacemaker and watchdog on, uvloop "
        "where installed; "
        "full ledger (keep=full, the default); aenqueue for single, aenqueue_many for bulk"
    )
    module = "faultline_"
    """Of the app that the worker runs."""
    phases = USUAL + ONE_ROW
    row = (
        "`tx: Transaction`: the row and the job's success in one transaction, on the worker's own connections"
    )
    recovery = "automatic by default (lease 15 s); recovery profile: --lease 3s"
    remaining = {
        "sql": "select (select count(*) from faultline.active) + (select count(*) from faultline.later)"
    }
    snapshot = (
        "select id, state, attempt, crashes, token, worker, claimed_at, finished_at "
        "from faultline.jobs order by id"
    )
    refusals = "select job_id, token, current_token, reason, worker, times from faultline.refused_writes"

    async def setup(self) -> None:
        subprocess.run(_faultline("migrate"), env=_environment(), check=True, stdout=subprocess.DEVNULL)

    async def open(self) -> None:
        await app.awake()  # connected before the clock starts, as the others are

    async def enqueue_one(self, job: Payload) -> None:
        await bench.aenqueue(**job)

    async def enqueue_many(self, jobs: Sequence[Payload]) -> None:
        await app.aenqueue_many(bench.new(**job) for job in jobs)

    async def close(self) -> None:
        await app.aclose()

    def worker_exec(self) -> list[str]:
        os.chdir(HERE)
        os.environ.update(_environment())
        named = ["--name", os.environ.get("BENCH_WORKER_ID", "w0")]
        return _faultline("worker", f"{self.module}:app", *named, *(["--lease", "3s"] if RECOVERY else []))


def _faultline(*words: str) -> list[str]:
    return [sys.executable, "-m", "faultline", *words]


def _environment() -> dict[str, str]:
    return {**os.environ, "FAULTLINE_DSN": DSN}


if __name__ == "__main__":
    main(FaultlineKeepingAll())
