"""Calls without a cursor: the same replies, the same errors, and a hint right behind the commit."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from faultline.job import NewJob
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.driver.async_connection import AsyncPqConnection, SyncPqConnection
from faultline.store.driver.connect import aconnect
from faultline.store.driver.prepared import STATEMENTS_MAX
from faultline.store.pool import AsyncStore, Store


@pytest.fixture
def plain(database):
    with SyncPqConnection.connect(database, autocommit=True) as conn:
        yield conn


def new(args="{}", queue="default"):
    return NewJob(task="t", args=args, queue=queue, max_attempts=3)


def ask(conn, call, hint=None):
    return call.read(conn.wait(conn.prepared_calls.carry(call, hint)))


def test_a_call_says_the_same_whole_and_prepared(plain):
    ids = [ask(plain, calls.enqueue(new(args='{"n":1}'))) for _ in range(4)]

    assert ids == sorted(set(ids))
    assert [ask(plain, calls.get(job_id)).args for job_id in ids] == [{"n": 1}] * 4


def test_from_the_second_time_on_a_statement_is_prepared_under_a_name_of_its_own(plain):
    for number in (1, 2, 3):
        for call in (calls.get(number), calls.get(2**40), Call("now", {}, read=list)):
            ask(plain, call)

    names = plain.execute("select name from pg_prepared_statements order by name").fetchall()
    assert names == [("faultline_0",), ("faultline_1",), ("faultline_2",)]


def test_no_more_statements_are_kept_than_so_many(plain):
    for _ in range(2):
        for width in range(STATEMENTS_MAX + 20):
            ask(plain, Call("now" + " " * width, {}, read=list))

    (kept,) = plain.execute("select count(*) from pg_prepared_statements").fetchone()
    assert kept == STATEMENTS_MAX


def test_an_error_is_the_drivers_and_the_connection_goes_on(plain):
    for _ in range(3):
        with pytest.raises(psycopg.Error) as fault:
            ask(plain, Call("retry_now", {"job_id": 99}, read=list))
        assert fault.value.sqlstate == "LS003"

    assert ask(plain, Call("now", {}, read=len)) == 1


def test_a_session_that_was_told_to_forget_its_statements_is_told_them_again(plain):
    job_id = [ask(plain, calls.enqueue(new()), calls.wake("default")) for _ in range(3)][-1]

    plain.execute("deallocate all")

    assert [ask(plain, calls.enqueue(new()), calls.wake("default")) for _ in range(3)] == [
        job_id + 1, job_id + 2, job_id + 3,
    ]  # fmt: skip


def test_a_hint_is_carried_out_behind_the_commit_and_in_a_transaction_of_its_own(database, plain):
    with psycopg.connect(database, autocommit=True) as ears:
        ears.execute("listen faultline")
        for _ in range(3):
            job_id = ask(plain, calls.enqueue(new(queue="mail")), calls.wake("mail"))
            news = next(ears.notifies(timeout=60, stop_after=1))
            assert news.payload == "mail"
            assert ask(plain, calls.get(job_id)).state == "queued"


def test_a_hint_that_fails_leaves_the_reply_and_the_connection_whole(plain):
    broken = Call("no_such_function", {}, read=list)
    for _ in range(3):
        assert ask(plain, calls.enqueue(new()), broken) > 0
    assert ask(plain, Call("now", {}, read=len)) == 1


def test_a_call_that_fails_does_so_although_its_hint_succeeds(plain):
    for _ in range(3):
        with pytest.raises(psycopg.Error):
            ask(plain, Call("retry_now", {"job_id": 99}, read=list), calls.wake("mail"))
    assert ask(plain, Call("now", {}, read=len)) == 1


def test_a_commit_that_fails_is_an_error_with_a_hint_as_without(db, plain):
    """Every job is accepted by its statement, and refused by its commit."""
    db.execute(
        "create function refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'not at all' using errcode = '23514'; end $$;"
        "create constraint trigger late after insert on faultline.active deferrable initially deferred"
        " for each row execute function refuse()"
    )

    for hint in (None, calls.wake("default")) * 3:
        with pytest.raises(psycopg.errors.CheckViolation, match="not at all"):
            ask(plain, calls.enqueue(new()), hint)
    assert ask(plain, Call("now", {}, read=len)) == 1


def test_the_async_connection_speaks_alike(database):
    async def main():
        async with await aconnect(database, AsyncPqConnection) as conn:
            claim = calls.claim(["default"], 5, lease=timedelta(seconds=15), claim=uuid4())
            enqueue = calls.enqueue(new())
            for _ in range(3):
                ((job_id,),) = await conn.wait(conn.prepared_calls.carry(enqueue, calls.wake("default")))
            rows = await conn.wait(conn.prepared_calls.carry(claim))
            return job_id, [row[0] for row in rows]

    job_id, claimed = asyncio.run(main())
    assert claimed[-1] == job_id


def test_both_stores_carry_a_hint_also_without_prepared_statements(database):
    with psycopg.connect(database, autocommit=True) as ears:
        ears.execute("listen faultline")
        for prepare in (True, False):
            store = Store(database, prepare=prepare)
            store.run(calls.enqueue(new()), calls.wake("plain"))
            store.close()
            asyncio.run(_in_a_loop(database, prepare))
        told = [news.payload for news in ears.notifies(timeout=2, stop_after=4)]
    assert told == ["plain", "looped"] * 2


async def _in_a_loop(dsn: str, prepare: bool) -> None:
    store = AsyncStore(dsn, prepare=prepare)
    await store.run(calls.enqueue(new()), calls.wake("looped"))
    await store.close()
