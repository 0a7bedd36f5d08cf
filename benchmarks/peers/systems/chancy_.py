"""Chancy: async jobs on PostgreSQL."""

import logging

from _adapter import DSN, ONE_ROW, RECOVERY, USUAL, Probe, PsycopgRows, System, chunks, knob, main
from chancy import Chancy, Queue, Worker, job
from chancy.plugins.recovery import Recovery

PROBE = Probe()
INSERT = PsycopgRows()
LOG = logging.getLogger("bench.chancy")  # the default logger prints a line per job
LOG.setLevel(logging.WARNING)


@job(queue="bench")
async def bench(*, seq: int, kind: str, pad: str):
    await PROBE.handle({"seq": seq}, insert=INSERT)


class ChancySystem(System):
    name = "chancy"
    packages = ["chancy", "psycopg"]
    settings = (
        "AsyncExecutor queue, concurrency=30 (100 and 300 were slower), polling_interval=1, "
        "eager_polling=True; log level WARNING; push_many in chunks of 1000"
    )
    recovery = (
        "automatic by default (heartbeat_timeout=90, Recovery poll 60 s); recovery profile: "
        "heartbeat_poll_interval=2, heartbeat_timeout=8, Recovery(poll_interval=3)"
    )
    remaining = {"sql": "select count(*) from chancy_jobs where state not in ('succeeded','failed')"}
    snapshot = "select id, state, attempts, max_attempts, taken_by, claim_id, completed_at from chancy_jobs"

    phases = USUAL + ONE_ROW
    row = "a psycopg pool of 10 connections; one insert, committed by itself"

    def app(self):
        plugins = [Recovery(poll_interval=3)] if RECOVERY else []
        return Chancy(DSN, plugins=plugins, log=LOG)

    async def setup(self):
        async with self.app() as c:
            await c.migrate()
            await c.declare(
                Queue(
                    "bench",
                    concurrency=knob("concurrency", 30),
                    polling_interval=1,
                    eager_polling=True,
                    executor=Chancy.Executor.Async,
                )
            )

    async def open(self):
        self.c = Chancy(DSN, min_connection_pool_size=1, max_connection_pool_size=1, log=LOG)
        await self.c.pool.open()

    async def close(self):
        await self.c.pool.close()

    async def enqueue_one(self, j):
        await self.c.push(bench.job.with_kwargs(**j))

    async def enqueue_many(self, jobs):
        for c in chunks(jobs, 1000):
            async for _ in self.c.push_many([bench.job.with_kwargs(**j) for j in c]):
                pass

    async def worker(self, probe):
        extra = {"heartbeat_poll_interval": 2, "heartbeat_timeout": 8} if RECOVERY else {}
        async with self.app() as c, Worker(c, **extra) as w:
            await w.wait_for_shutdown()


if __name__ == "__main__":
    # chancy stores the import path of the job function: it must not be __main__
    import chancy_ as me

    main(me.ChancySystem())
