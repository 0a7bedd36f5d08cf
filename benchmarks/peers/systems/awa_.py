"""Awa: a Rust engine with a Python worker."""

import asyncio
from dataclasses import dataclass

import awa
from _adapter import DSN, ONE_ROW, RECOVERY, USUAL, AsyncpgRows, System, chunks, knob, main

SHORT_HEARTBEATS = {
    "heartbeat_interval_ms": 1000,
    "heartbeat_staleness_ms": 5000,
    "heartbeat_rescue_interval_ms": 1000,
}


@dataclass
class BenchJob:
    seq: int
    kind: str
    pad: str


class Awa(System):
    name = "awa"
    packages = ["awa-pg"]
    settings = (
        "queue-storage engine (install_queue_storage(); migrate() alone leaves 'canonical' active); "
        "worker start([('bench', 1024)]), max_connections=20; enqueue_many_copy in chunks of 5000"
    )
    recovery = (
        "automatic by default; recovery profile: heartbeat_interval_ms=1000, "
        "heartbeat_staleness_ms=5000, heartbeat_rescue_interval_ms=1000"
    )
    # the awa.jobs view takes many seconds on a drained 20k backlog, so count the storage tables
    remaining = {
        "sql": (
            "select (select count(*) from awa.ready_entries) - (select coalesce(sum(completed_count),0) "
            "from awa.receipt_completion_batches) - (select count(*) from awa.done_entries)"
        )
    }
    snapshot = (
        "select 'view' t, id, state::text, attempt, run_lease, finalized_at from awa.jobs "
        "union all select 'receipt', unnest(job_ids), 'completed', unnest(attempts), "
        "unnest(run_leases), finalized_at from awa.receipt_completion_batches "
        "union all select 'done', job_id, state::text, attempt, run_lease, finalized_at from awa.done_entries"
    )

    phases = USUAL + ONE_ROW
    row = "an asyncpg pool of 10 connections; one insert, committed by itself"

    async def setup(self):
        c = awa.AsyncClient(DSN)
        await c.migrate()
        await c.install_queue_storage()  # migrate alone leaves the older 'canonical' engine active
        await c.close()

    async def open(self):
        self.c = awa.AsyncClient(DSN, max_connections=1)

    async def close(self):
        await self.c.close()

    async def enqueue_one(self, job):
        await self.c.insert(BenchJob(**job), queue="bench")

    async def enqueue_many(self, jobs):
        for c in chunks(jobs, 5000):
            await self.c.enqueue_many_copy([BenchJob(**j) for j in c], queue="bench")

    async def worker(self, probe):
        c = awa.AsyncClient(DSN, max_connections=knob("pool", 20))
        insert = AsyncpgRows()

        @c.task(BenchJob, queue="bench")
        async def bench(job):
            a = job.args
            await probe.handle({"seq": a.seq}, insert=insert)

        extra = SHORT_HEARTBEATS if RECOVERY else {}
        await c.start([("bench", knob("concurrency", 1024))], **extra)
        await asyncio.Event().wait()


if __name__ == "__main__":
    main(Awa())
