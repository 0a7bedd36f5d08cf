"""DBOS: a workflow without steps is its job."""

import asyncio
import os

from _adapter import DSN, Probe, System, knob, main
from dbos import DBOS, DBOSClient

PROBE = Probe()


@DBOS.workflow(name="bench")
async def bench(job):
    await PROBE.handle(job)


class Dbos(System):
    name = "dbos"
    packages = ["dbos"]
    settings = (
        "DBOS.register_queue('bench', worker_concurrency=200, polling_interval_sec=0.1), "
        "sys_db_pool_size=20; DBOSClient.enqueue for producers; async @DBOS.workflow without steps; no "
        "bulk API"
    )
    recovery = (
        "no automatic cross-worker recovery without Conductor; documented: a relaunched process with the "
        "same executor_id recovers its PENDING workflows at DBOS.launch(); the recovery profile "
        "relaunches the killed worker's executor_id"
    )
    relaunch = True
    remaining = {
        "sql": (
            "select count(*) from dbos.workflow_status where name='bench' and status in "
            "('ENQUEUED','PENDING','DELAYED')"
        )
    }
    snapshot = (
        "select workflow_uuid, status, executor_id, recovery_attempts, updated_at, completed_at from "
        "dbos.workflow_status where name='bench'"
    )
    bulk_note = "no bulk API: 10 threads of DBOSClient.enqueue"

    def config(self):
        return {
            "name": "bench",
            "system_database_url": DSN,
            "sys_db_pool_size": knob("pool", 20),
            "executor_id": os.environ.get("BENCH_WORKER_ID", "w0"),
            "application_version": "1",
            "log_level": "WARNING",
        }

    async def setup(self):
        await self._launch()
        DBOS.destroy()

    async def _launch(self):
        DBOS(config=self.config())
        DBOS.launch()
        await DBOS.register_queue_async(
            "bench", worker_concurrency=knob("concurrency", 200), polling_interval_sec=0.1
        )

    async def open(self):
        self.c = DBOSClient(system_database_url=DSN)

    async def close(self):
        self.c.destroy()

    async def enqueue_one(self, job):
        self.c.enqueue({"queue_name": "bench", "workflow_name": "bench", "app_version": "1"}, job)

    async def enqueue_many(self, jobs):
        it = iter(jobs)
        opts = {"queue_name": "bench", "workflow_name": "bench", "app_version": "1"}

        def pump():
            for j in it:
                self.c.enqueue(opts, j)

        await asyncio.gather(*(asyncio.to_thread(pump) for _ in range(10)))

    async def worker(self, probe):
        await self._launch()
        await asyncio.Event().wait()


if __name__ == "__main__":
    main(Dbos())
