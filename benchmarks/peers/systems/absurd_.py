"""Absurd: durable tasks in PostgreSQL, through its async Python SDK."""

import subprocess
import sys
from pathlib import Path

from _adapter import DSN, RECOVERY, System, knob, main
from absurd_sdk import AsyncAbsurd


class Absurd(System):
    name = "absurd"
    packages = ["absurd-sdk", "absurdctl"]
    settings = (
        "AsyncAbsurd.start_worker(concurrency=50, batch_size=50, poll_interval=0.05); unpartitioned "
        "queue (default); the Python SDK has no bulk spawn"
    )
    recovery = (
        "automatic by default: claim_timeout=120 s lease; recovery profile: claim_timeout=8 with "
        "ctx.heartbeat() each second"
    )
    remaining = {
        "sql": "select count(*) from absurd.t_bench where state not in ('completed','failed','cancelled')"
    }
    snapshot = (
        "select t.task_id, t.state tstate, t.attempts, r.run_id, r.attempt, r.state rstate, "
        "r.claimed_by, r.completed_at, r.failed_at, r.failure_reason->>'name' why from absurd.t_bench t "
        "join absurd.r_bench r using(task_id) order by r.attempt"
    )
    bulk_note = "no bulk API: same calls as single"

    async def setup(self):
        subprocess.run(
            [str(Path(sys.executable).parent / "absurdctl"), "init", "-d", DSN],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        a = AsyncAbsurd(DSN, queue_name="bench")
        await a.create_queue("bench")
        await a.close()

    def client(self, probe=None):
        a = AsyncAbsurd(DSN, queue_name="bench")

        @a.register_task("bench")
        async def bench(params, ctx):
            await probe.handle(params, beat=(lambda: ctx.heartbeat(8)) if RECOVERY else None)

        return a

    async def open(self):
        self.a = self.client()

    async def close(self):
        await self.a.close()

    async def enqueue_one(self, job):
        await self.a.spawn("bench", job)

    async def enqueue_many(self, jobs):
        for j in jobs:
            await self.a.spawn("bench", j)

    async def worker(self, probe):
        n = knob("concurrency", 50)
        await self.client(probe).start_worker(
            concurrency=n, batch_size=n, poll_interval=0.05, **({"claim_timeout": 8} if RECOVERY else {})
        )


if __name__ == "__main__":
    main(Absurd())
