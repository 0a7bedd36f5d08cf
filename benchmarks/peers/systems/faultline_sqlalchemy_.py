"""Faultline with SQLAlchemy: an async session of the app's own, over asyncpg, around the handler."""

import os

from _adapter import DSN, ONE_ROW, ROWS_POOL, Probe, main
from faultline_ import FaultlineKeepingAll
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from faultline import Faultline

PROBE = Probe()
INSERT = text("insert into bench_effects (seq, pgid) values (:seq, :pgid)")
app = Faultline(DSN or None)
url = DSN.replace("postgresql://", "postgresql+asyncpg://") or "postgresql+asyncpg://"
app.transactions.register(AsyncSession, async_sessionmaker(create_async_engine(url, pool_size=ROWS_POOL)))


@app.task(name="bench")
async def bench(session: AsyncSession, seq: int, kind: str, pad: str) -> None:
    PROBE.start({"seq": seq})
    await session.execute(INSERT, {"seq": seq, "pgid": os.getpid()})


class FaultlineWithSqlalchemy(FaultlineKeepingAll):
    name = "faultline, SQLAlchemy"
    packages = ["faultline-queue", "sqlalchemy", "asyncpg", "uvloop"]
    module = "faultline_sqlalchemy_"
    phases = ONE_ROW
    row = (
        "`session: AsyncSession` of an engine of 10 connections over asyncpg: the row and the job's success "
        "in one transaction"
    )


if __name__ == "__main__":
    main(FaultlineWithSqlalchemy())
