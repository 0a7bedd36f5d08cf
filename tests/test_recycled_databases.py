"""A database that a test has used is a new one for the next test, or is not used again."""

from contextlib import closing

import psycopg
import pytest

from faultline.store.pool import Store
from tests.support import contents, enqueue


def use(server, recycled, *statements: str) -> str:
    """Lend a database, run statements in it, and give it back; its name meanwhile."""
    name: str
    with recycled.lent() as name, psycopg.connect(server.dsn(name), autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement.encode())
    return name


def contents_of_next(server, recycled):
    with recycled.lent() as name:
        return contents(server.dsn(name))


def test_rows_are_as_the_template_has_them(server, recycled):
    before = contents_of_next(server, recycled)

    use(
        server, recycled,
        "select faultline.enqueue('charge', key => 'order-7', queue => 'billing')",
        "select faultline.claim('{billing}', 1, '15 s', gen_random_uuid())",
        "update faultline.settings set default_lease = '3 s'",
        "delete from faultline.rounds",
    )  # fmt: skip

    assert contents_of_next(server, recycled) == before


def test_numbers_begin_again(server, recycled):
    def first_number() -> int:
        with recycled.lent() as name, closing(Store(server.dsn(name))) as store:
            return enqueue(store)

    assert first_number() == first_number()


def test_a_name_is_used_once(server, recycled):
    """What a test has left behind finds no database, instead of the next test's."""
    name = use(server, recycled, "select 1")

    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(server.dsn(name))


FACTS = """
select to_regclass('orders'), to_regclass('faultline.queue_depth') is null,
       current_setting('statement_timeout'),
       (select count(*) from pg_statistic where starelid = 'faultline.active'::regclass),
       (select prosrc from pg_proc where oid = 'faultline.now'::regproc)
"""


def facts_of_next(server, recycled):
    with recycled.lent() as name, psycopg.connect(server.dsn(name), autocommit=True) as conn:
        return conn.execute(FACTS).fetchone()


@pytest.mark.parametrize(
    "change",
    [
        "create table orders (id int)",
        "create or replace function faultline.now() returns timestamptz language sql as 'select now()'",
        "drop view faultline.queue_depth",
        "analyze faultline.active",
        "do 'begin execute format($$alter database %I set statement_timeout = 7$$, current_database()); end'",
    ],
)
def test_a_database_with_other_changes_is_dropped(server, recycled, change):
    before = facts_of_next(server, recycled)

    use(server, recycled, "select faultline.enqueue('charge')", change)

    assert facts_of_next(server, recycled) == before


def test_sessions_that_a_test_forgot_are_ended(server, recycled):
    with recycled.lent() as name:
        forgotten = psycopg.connect(server.dsn(name), autocommit=True)

    with pytest.raises(psycopg.OperationalError):
        forgotten.execute("select 1")
