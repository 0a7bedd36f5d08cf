"""PgQueuer: the shortest complete adapter."""

import json
from datetime import timedelta

import asyncpg
from _adapter import DSN, ONE_ROW, RECOVERY, USUAL, AsyncpgRows, System, chunks, knob, main
from pgqueuer import PgQueuer
from pgqueuer.queries import Queries


class PgQueuerSystem(System):
    name = "pgqueuer"
    packages = ["pgqueuer", "asyncpg"]
    settings = (
        "asyncpg connection; run(batch_size=100), other defaults (unlimited concurrency); list enqueue "
        "in chunks of 1000"
    )
    recovery = "automatic by default (heartbeat_timeout=30 s); recovery profile shortens it to 8 s"
    remaining = {"sql": "select count(*) from pgqueuer"}
    snapshot = (
        "select 'queue' t, id job_id, status::text, null::timestamptz created from pgqueuer union all "
        "select 'log', job_id, status::text, created from pgqueuer_log order by 4 nulls first"
    )

    phases = USUAL + ONE_ROW
    row = "an asyncpg pool of 10 connections; one insert, committed by itself"

    async def setup(self):
        c = await asyncpg.connect(DSN)
        await Queries.from_asyncpg_connection(c).install()
        await c.close()

    async def open(self):
        self.c = await asyncpg.connect(DSN)
        self.q = Queries.from_asyncpg_connection(self.c)

    async def close(self):
        await self.c.close()

    async def enqueue_one(self, job):
        await self.q.enqueue("bench", json.dumps(job).encode(), 0)

    async def enqueue_many(self, jobs):
        for c in chunks(jobs, 1000):
            n = len(c)
            await self.q.enqueue(["bench"] * n, [json.dumps(j).encode() for j in c], [0] * n)

    async def worker(self, probe):
        pgq = PgQueuer.from_asyncpg_connection(await asyncpg.connect(DSN))

        insert = AsyncpgRows()

        @pgq.entrypoint("bench")
        async def bench(job):
            await probe.handle(json.loads(job.payload), insert=insert)

        extra = {"heartbeat_timeout": timedelta(seconds=8)} if RECOVERY else {}
        await pgq.run(batch_size=knob("batch", 100), **extra)


if __name__ == "__main__":
    main(PgQueuerSystem())
