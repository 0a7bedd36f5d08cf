"""Dramatiq on redis."""

import os
import sys

import dramatiq
from _adapter import HERE, RECOVERY, REDIS_URL, Probe, System, knob, main
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware.asyncio import AsyncIO

PROBE = Probe()
broker = RedisBroker(
    url=REDIS_URL or "redis://",
    **({"heartbeat_timeout": 8000, "maintenance_chance": 100_000} if RECOVERY else {}),
)
broker.add_middleware(AsyncIO())
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="bench", actor_name="bench")
async def bench(**job):
    await PROBE.handle(job)


class DramatiqOnRedis(System):
    name = "dramatiq-redis"
    packages = ["dramatiq", "redis"]
    backend = "redis"
    settings = (
        "dramatiq -p 1 -t 8 (CLI default threads), AsyncIO middleware, async actor; bulk = send() in a loop"
    )
    recovery = (
        "automatic by default (heartbeat_timeout=60 s, probabilistic maintenance); recovery profile: "
        "heartbeat_timeout=8 s, maintenance_chance=100000"
    )
    remaining = {"redis": [["LLEN", "dramatiq:bench"], ["HLEN", "dramatiq:bench.msgs"]]}
    bulk_note = "no bulk API: send() in a loop, as single"

    async def open(self): ...

    async def enqueue_one(self, job):
        bench.send(**job)

    async def enqueue_many(self, jobs):
        for j in jobs:
            bench.send(**j)

    def worker_exec(self):
        os.chdir(HERE)
        return [sys.executable, "-m", "dramatiq", "dramatiq_", "-p", "1", "-t", str(knob("concurrency", 8))]


if __name__ == "__main__":
    main(DramatiqOnRedis())
