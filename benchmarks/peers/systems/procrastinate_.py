"""Procrastinate: tasks on PostgreSQL."""

import procrastinate
from _adapter import DSN, ONE_ROW, RECOVERY, USUAL, Probe, PsycopgRows, System, chunks, knob, main

PROBE = Probe()
INSERT = PsycopgRows()


def make_app(pool: int) -> procrastinate.App:
    app = procrastinate.App(
        connector=procrastinate.PsycopgConnector(conninfo=DSN, min_size=min(pool, 4), max_size=pool)
    )

    @app.task(queue="bench", name="bench")
    async def bench(**job):
        await PROBE.handle(job, insert=INSERT)

    if RECOVERY:  # docs: "Retry stalled jobs", the periodic task is the user's to write

        @app.periodic(cron="* * * * * */5")
        @app.task(queue="bench", name="retry_stalled", queueing_lock="retry_stalled", pass_context=True)
        async def retry_stalled(context, timestamp):
            for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=10):
                await app.job_manager.retry_job(job)

    app.bench = bench
    return app


class Procrastinate(System):
    name = "procrastinate"
    packages = ["procrastinate", "psycopg"]
    settings = (
        "PsycopgConnector; worker concurrency=30, pool max_size=20, listen_notify on, delete_jobs=never "
        "(default); batch_defer_async in chunks of 1000"
    )
    recovery = (
        "opt-in periodic task from the docs: get_stalled_jobs(seconds_since_heartbeat=10)+retry_job "
        "every 5 s; update_heartbeat_interval=2, stalled_worker_timeout=10"
    )
    remaining = {
        "sql": (
            "select count(*) from procrastinate_jobs where queue_name='bench' and task_name='bench' and "
            "status in ('todo','doing')"
        )
    }
    snapshot = (
        "select j.id, j.status, j.attempts, j.worker_id, (select json_agg(e.type order by e.id) from "
        "procrastinate_events e where e.job_id=j.id) ev from procrastinate_jobs j where task_name='bench'"
    )

    phases = USUAL + ONE_ROW
    row = "a psycopg pool of 10 connections; one insert, committed by itself"

    async def setup(self):
        app = make_app(1)
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def open(self):
        self.app = make_app(1)
        await self.app.open_async()

    async def close(self):
        await self.app.close_async()

    async def enqueue_one(self, job):
        await self.app.bench.defer_async(**job)

    async def enqueue_many(self, jobs):
        for c in chunks(jobs, 1000):
            await self.app.bench.batch_defer_async(*c)

    async def worker(self, probe):
        app = make_app(knob("pool", 20))
        extra = {"update_heartbeat_interval": 2, "stalled_worker_timeout": 10} if RECOVERY else {}
        async with app.open_async():
            await app.run_worker_async(queues=["bench"], concurrency=knob("concurrency", 30), **extra)


if __name__ == "__main__":
    main(Procrastinate())
