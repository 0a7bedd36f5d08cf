"""SAQ on PostgreSQL."""

import asyncio

from _adapter import DSN, RECOVERY, Probe, System, knob, main
from saq import Job, Queue, Worker

PROBE = Probe()


async def bench(ctx, *, seq, kind, pad):
    job = ctx["job"]
    await PROBE.handle({"seq": seq}, beat=job.update if RECOVERY else None)


class Saq(System):
    name = "saq-postgres"
    packages = ["saq", "psycopg"]
    settings = (
        "Worker concurrency=50, LISTEN/NOTIFY dequeue (default), pool max_size=20 (default); no bulk "
        "API: bulk = 20 concurrent enqueue() calls"
    )
    recovery = (
        "opt-in per job: enqueue(timeout=0, heartbeat=8, retries=3), handler calls job.update() each "
        "second; worker timers sweep=3 s. Default is timeout=10 s, retries=1: a swept job is aborted, "
        "not re-run"
    )
    remaining = {"sql": "select count(*) from saq_jobs where status in ('new','queued','active','aborting')"}
    snapshot = (
        "select key, status, convert_from(job,'utf8')::json->>'attempts' attempts, "
        "convert_from(job,'utf8')::json->>'error' err, convert_from(job,'utf8')::json->>'completed' "
        "completed from saq_jobs"
    )
    bulk_note = "no bulk API: 20 concurrent enqueue() on a 20-connection pool"

    async def setup(self):
        q = Queue.from_url(DSN)
        await q.connect()
        await q.disconnect()

    async def open(self, n=1):
        self.q = Queue.from_url(DSN, min_size=n, max_size=n)
        await self.q.connect()

    async def close(self):
        await self.q.disconnect()

    async def enqueue_one(self, j):
        kw = {"timeout": 0, "heartbeat": 8, "retries": 3} if RECOVERY else {}
        await self.q.enqueue(Job("bench", kwargs=j, **kw))

    async def enqueue_many(self, jobs):
        if self.q.max_size == 1:
            await self.close()
            await self.open(20)
        it = iter(jobs)

        async def pump():
            for j in it:
                await self.enqueue_one(j)

        await asyncio.gather(*(pump() for _ in range(20)))

    async def worker(self, probe):
        q = Queue.from_url(DSN)
        w = Worker(
            q,
            functions=[bench],
            concurrency=knob("concurrency", 50),
            timers={"sweep": 3} if RECOVERY else None,
        )
        await q.connect()
        await w.start()


if __name__ == "__main__":
    main(Saq())
