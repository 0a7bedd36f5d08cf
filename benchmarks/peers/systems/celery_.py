"""Celery on redis, with late acknowledgement."""

import os
import sys

from _adapter import HERE, RECOVERY, REDIS_URL, Probe, System, knob, main
from celery import Celery

PROBE = Probe()
app = Celery("celery_", broker=REDIS_URL or "redis://")
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    task_default_queue="bench",
    worker_prefetch_multiplier=knob("prefetch", 64),
    broker_connection_retry_on_startup=True,
    task_reject_on_worker_lost=True,
)
if RECOVERY:
    app.conf.broker_transport_options = {"visibility_timeout": 10}


@app.task(name="bench")
def bench(**job):
    PROBE.handle_sync(job)


class CeleryOnRedis(System):
    name = "celery-redis"
    packages = ["celery", "redis", "kombu"]
    backend = "redis"
    settings = (
        "prefork concurrency=2, task_acks_late, task_reject_on_worker_lost, ignore_result, "
        "prefetch_multiplier=64; sync task (celery has no async); bulk = apply_async over one reused "
        "producer"
    )
    recovery = "visibility_timeout=10 s (default is 3600 s)"
    remaining = {"redis": [["LLEN", "bench"], ["HLEN", "unacked"]]}
    bulk_note = "no bulk API: apply_async with one reused producer, as single"

    async def open(self):
        self.p = app.amqp.Producer(app.connection_for_write().channel())

    async def close(self):
        self.p.close()

    async def enqueue_one(self, job):
        bench.apply_async(kwargs=job, producer=self.p)

    async def enqueue_many(self, jobs):
        for j in jobs:
            bench.apply_async(kwargs=j, producer=self.p)

    def worker_exec(self):
        os.chdir(HERE)
        concurrency = str(knob("concurrency", 2))
        quiet = ["--loglevel=WARNING", "-Ofair", "--without-gossip", "--without-mingle"]
        celery = [sys.executable, "-m", "celery", "-A", "celery_", "worker"]
        return [*celery, "-c", concurrency, *quiet, "-n", f"w{os.getpid()}@%h"]


if __name__ == "__main__":
    main(CeleryOnRedis())
