"""A handler of asyncpg that freezes between two messages of a statement: what ends its transaction."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.worker.harness import eventually, execute, rows

LOCKED = "select count(*) from pg_locks where pid = %s and relation = 'effects'::regclass"
STATE = """
select state, wait_event, query_start < clock_timestamp() - interval '500 ms'
from pg_stat_activity where pid = %s
"""
GUIDES_QUERY = """
select pg_terminate_backend(pid) from pg_stat_activity
where state = 'active' and wait_event = 'ClientRead' and xact_start < now() - %s
  and datname = current_database()
"""
VERSION = "select current_setting('server_version_num')::int / 10000"


class Frozen:
    """A session of asyncpg inside a transaction that wrote a row; its loop does not turn any more.

    asyncpg sends a statement that is new to it in two steps: the first was sent, the second never is.
    """

    def __init__(self, dsn: str, **settings: str) -> None:
        parts = conninfo_to_dict(dsn)
        self._where: dict[str, Any] = {
            "host": parts["host"], "port": parts["port"], "user": parts["user"], "database": parts["dbname"],
            "server_settings": settings,
        }  # fmt: skip
        self._loop = asyncio.new_event_loop()
        self.pid = self._loop.run_until_complete(self._begin())

    async def _begin(self) -> int:
        self._conn = await asyncpg.connect(**self._where)
        await self._conn.transaction().start()
        await self._conn.execute("insert into effects (job_id, token, said) values (1, 1, 'frozen')")
        self._statement = asyncio.ensure_future(self._conn.fetchval("select $1::int", 1))
        await asyncio.sleep(0)  # its first message is on the way, and nothing more will be
        return int(self._conn.get_server_pid())

    def close(self) -> None:
        self._conn.terminate()
        self._statement.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


@pytest.fixture
def frozen(database, store) -> Iterator[Any]:
    made: list[Frozen] = []

    def freeze(**settings: str) -> Frozen:
        made.append(Frozen(database, **settings))
        return made[-1]

    yield freeze
    for each in made:
        each.close()


def test_it_is_active_for_the_server_and_statement_timeout_does_not_end_it(database, frozen):
    session = frozen(statement_timeout="50ms")

    eventually(lambda: rows(database, STATE, session.pid) == [("active", "ClientRead", True)])
    assert rows(database, LOCKED, session.pid) != [(0,)]

    execute(database, GUIDES_QUERY, timedelta(0))
    eventually(lambda: rows(database, STATE, session.pid) == [])
    assert rows(database, "select count(*) from effects") == [(0,)]


def test_transaction_timeout_ends_it(database, frozen):
    ((version,),) = rows(database, VERSION)
    if version < 17:
        pytest.skip("PostgreSQL has transaction_timeout from 17 on")
    session = frozen(transaction_timeout="500ms")

    eventually(lambda: rows(database, STATE, session.pid) == [])

    assert rows(database, "select count(*) from effects") == [(0,)]
