"""Callers at the same time, for tests of enqueues that gather."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg

from faultline import Faultline
from tests.support import new_job

MAIL = "mail"
"""The queue of their jobs."""


class InLoop:
    """Callers at the same time, as coroutines of one loop."""

    def __init__(self, app):
        self.app = app
        self.loop = asyncio.Runner()

    def all_at_once(self, jobs):
        async def main():
            sending = (id_of(self.app._sender.aenqueue(job)) for job in jobs)
            return await asyncio.gather(*sending, return_exceptions=True)

        return self.loop.run(main())

    def close(self):
        self.loop.run(self.app.aclose())
        self.loop.close()


class InThreads:
    """Callers at the same time, as threads."""

    def __init__(self, app):
        self.app = app

    def all_at_once(self, jobs):
        ready = threading.Barrier(len(jobs))

        def send(job):
            ready.wait(30)
            try:
                return self.app._sender.enqueue(job).id
            except Exception as error:
                return error

        with ThreadPoolExecutor(len(jobs)) as threads:
            return list(threads.map(send, jobs))

    def close(self):
        self.app.close()


async def id_of(sending):
    """The id of a job that is being sent."""
    return (await sending).id


FORMS = [InLoop, InThreads]


class BusyApp:
    """One app whose first job waits for a lock, while others gather behind it."""

    def __init__(self, database, dsn=None, key=None):
        self.database = database
        self.key = key
        self.app = Faultline(dsn or database, pooler="transaction" if dsn else None)
        self.sender = self.app._sender

    async def __aenter__(self):
        await self.sender.aenqueue(new_job(queue=MAIL))
        self.conn = await psycopg.AsyncConnection.connect(self.database)
        await self.shut()
        return self

    async def __aexit__(self, *gone):
        await self.conn.close()
        await self.app.aclose()

    async def shut(self):
        """Take the lock, and have the first job wait for it."""
        await self.conn.execute("lock table faultline.lanes in access exclusive mode")
        self.first = self.add(new_job(queue=MAIL, key=self.key))
        await self.until_waiting(1)

    def add(self, job):
        return asyncio.create_task(id_of(self.sender.aenqueue(job)))

    async def until_waiting(self, sessions):
        async with asyncio.timeout(30):
            while True:
                cursor = await self.conn.execute(
                    "select count(*) from pg_locks"
                    " where not granted and relation = 'faultline.lanes'::regclass"
                )
                if await cursor.fetchone() == (sessions,):
                    return
                await asyncio.sleep(0.01)

    async def let_go(self):
        await self.conn.rollback()
