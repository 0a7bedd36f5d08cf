"""Faultline with asyncpg: a connection of the app's own pool around the handler."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from _adapter import DSN, INSERT_NUMBERED, ONE_ROW, AsyncpgRows, Probe, main
from faultline_ import FaultlineKeepingAll

from faultline import Faultline

PROBE = Probe()
POOL = AsyncpgRows()
app = Faultline(DSN or None)


@asynccontextmanager
async def lent() -> AsyncIterator[asyncpg.Connection]:
    pool = await POOL.opened()
    async with pool.acquire() as conn:
        yield conn


app.transactions.register(asyncpg.Connection, lent)


@app.task(name="bench")
async def bench(conn: asyncpg.Connection, seq: int, kind: str, pad: str) -> None:
    PROBE.start({"seq": seq})
    await conn.execute(INSERT_NUMBERED, seq, os.getpid())


class FaultlineWithAsyncpg(FaultlineKeepingAll):
    name = "faultline, asyncpg"
    packages = ["faultline-queue", "asyncpg", "uvloop"]
    module = "faultline_asyncpg_"
    phases = ONE_ROW
    row = "`conn: asyncpg.Connection` from a pool of 10: the row and the job's success in one transaction"


if __name__ == "__main__":
    main(FaultlineWithAsyncpg())
