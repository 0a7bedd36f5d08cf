"""Rows inserted by psycopg alone, each in a transaction of its own, over connections that are warm."""

import asyncio
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final

import psycopg

from faultline.lab.bench.bench_app import INSERT
from faultline.lab.bench.measure.server_probe import ServerProbe
from faultline.lab.bench.measure.weight import cpu_seconds
from faultline.runtime.event_loop import run as run_loop

TABLE: Final = "create table one_row (n bigint not null, at timestamptz not null default now())"
WARM_UP: Final = 20
"""Rows of each connection before the clock starts: its statement is prepared by then."""

Figures = dict[str, float]


def in_the_loop(dsn: str, rows: int, at_once: int) -> Figures:
    """As many coroutines as connections share the rows."""
    return run_loop(_coroutines(dsn, rows, at_once))


async def _coroutines(dsn: str, rows: int, at_once: int) -> Figures:
    conns = [await psycopg.AsyncConnection.connect(dsn) for _ in range(at_once)]

    async def insert(conn: psycopg.AsyncConnection[Any], numbers: Iterator[int]) -> None:
        for number in numbers:
            await conn.execute(INSERT, [number])
            await conn.commit()

    async def insert_all(count: int) -> None:
        numbers = iter(range(count))
        await asyncio.gather(*(insert(conn, numbers) for conn in conns))

    try:
        await insert_all(at_once * WARM_UP)
        clock = _Clock(dsn)
        await insert_all(rows)
        return clock.stop(rows)
    finally:
        for conn in conns:
            await conn.close()


def in_threads(dsn: str, rows: int, at_once: int) -> Figures:
    """As many threads as connections share the rows."""
    with ExitStack() as stack:
        conns = [stack.enter_context(psycopg.connect(dsn)) for _ in range(at_once)]
        pool = stack.enter_context(ThreadPoolExecutor(at_once))

        def insert(conn: psycopg.Connection[Any], numbers: Iterator[int]) -> None:
            for number in numbers:
                conn.execute(INSERT, [number])
                conn.commit()

        def insert_all(count: int) -> None:
            numbers = iter(range(count))  # its next() is one step: threads may share it
            list(pool.map(lambda conn: insert(conn, numbers), conns))

        insert_all(at_once * WARM_UP)
        clock = _Clock(dsn)
        insert_all(rows)
        return clock.stop(rows)


class _Clock:
    """Time, our own CPU and the sessions' CPU, from now on."""

    def __init__(self, dsn: str) -> None:
        self._probe = ServerProbe(dsn)
        self._session = self._probe.session_cpu_seconds()
        self._client = cpu_seconds([os.getpid()])
        self._began = time.perf_counter()

    def stop(self, rows: int) -> Figures:
        seconds = time.perf_counter() - self._began
        figures = {"rows_per_second": rows / seconds}
        client, session = cpu_seconds([os.getpid()]), self._probe.session_cpu_seconds()
        for name, before, after in (("client", self._client, client), ("session", self._session, session)):
            if before is not None and after is not None:
                figures[f"{name}_cpu_us_per_row"] = (after - before) / rows * 1e6
        self._probe.close()
        return figures
