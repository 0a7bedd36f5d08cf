"""Ids and tokens are given once in every history of a database: a failover or a restore repeats none."""

import secrets
import shutil
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from faultline.errors import ServerUnavailable
from faultline.store import calls
from faultline.store.migrate import migrate
from faultline.store.pool import Store
from tests.promises.standby import a_primary, a_standby_of
from tests.support import claim_many, claim_one, enqueue, new_job, worker_named

CLAIM = "select token from faultline.claim(array['default'], 1, '15 s', gen_random_uuid())"
ENQUEUE = "select faultline.enqueue('work')"
WAITED_FOR = """
select locktype from pg_locks
where not granted and database = (select oid from pg_database where datname = current_database())
"""


def ids_and_tokens(dsn, many=20):
    """Enqueue and claim some jobs, each in a transaction of its own."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        ids = [conn.execute(ENQUEUE).fetchone()[0] for _ in range(many)]
        return ids, [conn.execute(CLAIM).fetchone()[0] for _ in range(many)]


def forget_the_server(db):
    """As on a server that was not met before: every session has to notice."""
    db.execute("select setval('faultline.server_mark', 1)")
    db.execute("update faultline.settings set server_started = '-infinity'")


def test_a_new_installation_gives_1_2_3(store):
    assert [enqueue(store) for _ in range(3)] == [1, 2, 3]


def test_a_promoted_standby_repeats_no_id_that_it_lost():
    with a_primary() as primary, a_standby_of(primary) as standby:
        migrate(primary.dsn())
        kept, _ = ids_and_tokens(primary.dsn())
        standby.catch_up(primary.dsn())
        standby.cut_off()
        lost, tokens_lost = ids_and_tokens(primary.dsn(), 50)

        standby.promote()
        ids, tokens = ids_and_tokens(standby.dsn())

    assert min(ids) > max([*kept, *lost])
    assert min(tokens) > max(tokens_lost)


def test_two_standbys_that_take_the_same_timeline_repeat_nothing():
    """Neither heard of the other; the one that is promoted later gives higher ids and higher tokens."""
    with ExitStack() as servers:
        primary = servers.enter_context(a_primary())
        migrate(primary.dsn())
        ids_and_tokens(primary.dsn())
        one, two = (servers.enter_context(a_standby_of(primary, name)) for name in ("one", "two"))
        for standby in (one, two):
            standby.catch_up(primary.dsn())
            standby.cut_off()

        one.promote()
        ids, tokens = ids_and_tokens(one.dsn(), 200)
        two.promote()
        later_ids, later_tokens = ids_and_tokens(two.dsn())
        timelines = {_timeline(standby.dsn()) for standby in (one, two)}

    assert timelines == {2}
    assert min(later_ids) > max(ids)
    assert min(later_tokens) > max(tokens)


def _timeline(dsn):
    with psycopg.connect(dsn) as conn:
        return conn.execute("select faultline.timeline()").fetchone()[0]


def test_a_restored_snapshot_of_the_files_repeats_nothing(tmp_path):
    """The same server identifier and the same timeline: only the start of the process tells them apart."""
    with a_primary() as primary:
        migrate(primary.dsn())
        ids_and_tokens(primary.dsn())
        data = _setting(primary.dsn(), "data_directory")
        copy = tmp_path / "snapshot"
        primary.halt("immediate")
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("postmaster.pid"))
        primary.resume()
        lost, tokens_lost = ids_and_tokens(primary.dsn(), 100)
        primary.halt("immediate")
        _put_back(copy, data)
        primary.resume()

        ids, tokens = ids_and_tokens(primary.dsn())

    assert min(ids) > max(lost)
    assert min(tokens) > max(tokens_lost)


def _setting(dsn, name):
    with psycopg.connect(dsn) as conn:
        return Path(conn.execute("select current_setting(%s)", [name]).fetchone()[0])


def _put_back(copy, data):
    """The files as they were, with the owners and rights that the server insists on."""
    for path in copy.rglob("*"):
        there = data / path.relative_to(copy)
        if path.is_file() and there.exists():
            there.write_bytes(path.read_bytes())
    for path in sorted(data.rglob("*"), reverse=True):
        if path.is_file() and not (copy / path.relative_to(data)).exists():
            path.unlink()


@pytest.mark.parametrize("lag", [0, 2_000_000])
def test_rows_that_came_without_their_sequence_are_stepped_over(store, db, lag):
    """As logical replication leaves them: jobs of the old server, sequences of a new one."""
    ids = store.run(calls.enqueue_many([new_job() for _ in range(3)]))
    db.execute("update faultline.active set id = id + %s", [lag])
    db.execute("alter sequence faultline.places restart")
    forget_the_server(db)

    assert enqueue(store) > max(ids) + lag


def test_queues_and_workers_that_came_without_their_sequences_are_stepped_over(store, db):
    enqueue(store, queue="old")
    worker_named(store, "old")
    for sequence in ("lanes_id_seq", "workers_id_seq"):
        db.execute(f"alter sequence faultline.{sequence} restart")
    forget_the_server(db)

    enqueue(store, queue="new")
    worker_named(store, "new")

    assert db.execute("select count(*) from faultline.lanes where queue in ('old', 'new')").fetchone() == (2,)


@pytest.mark.parametrize("way", ["enqueue", "enqueue_many", "enqueue_each", "keyed", "later", "claim"])
def test_every_way_to_a_number_notices_another_server(store, db, way):
    enqueue(store)
    forget_the_server(db)

    match way:
        case "enqueue":
            number = enqueue(store)
        case "enqueue_many":
            (number,) = store.run(calls.enqueue_many([new_job()]))
        case "enqueue_each":
            ((number, _),) = store.run(calls.enqueue_each([new_job()]))
        case "keyed":
            number = enqueue(store, key="order-7")
        case "later":
            number = db.execute("select faultline.enqueue('work', delay => '1 h')").fetchone()[0]
        case "claim":
            number = claim_one(store).token

    assert number > 1_000_000


def test_a_clock_that_was_set_back_still_raises_the_numbers(store, db, clock):
    first = enqueue(store)
    clock.advance(days=-1)
    forget_the_server(db)

    assert enqueue(store) > first + 100_000


def test_many_at_once_raise_the_numbers_once(store, db, session):
    """All of them have seen that the server is a new one before the first one raises."""
    enqueue(store)
    forget_the_server(db)
    owner, callers = session(), [session() for _ in range(4)]
    owner.begin()
    owner.sql("lock table faultline.migrations in exclusive mode")
    waiting = [one.until_waiting(one.start_sql(ENQUEUE), behind=owner) for one in callers[:1]]
    waiting += [one.until_waiting(one.start_sql(ENQUEUE)) for one in callers[1:]]
    owner.rollback()

    ids = [answer.result()[0][0] for answer in waiting]

    assert len(set(ids)) == len(callers)
    assert max(ids) - min(ids) < 1_000


def test_an_enqueue_in_an_open_transaction_holds_up_no_other(store, db, session):
    """The first caller after a failover may be a long transaction of a user's."""
    enqueue(store)
    forget_the_server(db)
    slow, quick = session(), session()
    slow.begin()
    slow.sql_at_once(ENQUEUE)

    quick.sql_at_once(ENQUEUE)
    quick.sql_at_once(CLAIM)
    slow.rollback()


def test_a_login_without_rights_cannot_hold_up_a_new_server(store, db, session):
    """What is waited for there is no advisory lock, which any login could take, but one of the owner's."""
    enqueue(store)
    forget_the_server(db)
    owner, producer = session(), session()
    stranger = f"stranger_{secrets.token_hex(4)}"
    db.execute(f"create role {stranger}")
    try:
        owner.begin()
        owner.sql("lock table faultline.migrations in exclusive mode")
        waits = producer.until_waiting(producer.start_sql(ENQUEUE), behind=owner)
        assert db.execute(WAITED_FOR).fetchall() == [("relation",)]

        db.execute(f"set role {stranger}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), db.transaction():
            db.execute("lock table faultline.migrations in access share mode")
    finally:
        db.execute("reset role")
        db.execute(f"drop role {stranger}")
    owner.rollback()
    assert waits.result()


def test_a_rollback_takes_nothing_back(store, db, session):
    enqueue(store)
    forget_the_server(db)
    unlucky = session()
    unlucky.begin()
    (lost,) = unlucky.sql_at_once(ENQUEUE)[0]
    unlucky.rollback()

    assert lost < enqueue(store) < lost + 1_000


@pytest.mark.parametrize("asked", [ENQUEUE, CLAIM])
def test_a_server_that_tells_no_timeline_is_worked_on_all_the_same(store, db, asked):
    """Aurora has no WAL of its own to name: the start of the process and the clock are left."""
    first = enqueue(store)
    db.execute(
        "create or replace function faultline.timeline() returns int language plpgsql volatile"
        " as $$ begin raise 'no WAL here' using errcode = '55000'; end $$"
    )
    forget_the_server(db)

    try:
        (number,) = db.execute(asked).fetchone()
    except psycopg.Error as refused:
        pytest.fail(str(refused))

    assert number > first + 1_000_000


def test_the_ledger_gets_the_ranges_of_the_new_ids_and_none_between(store, db, clock):
    enqueue(store)
    clock.advance(days=100)
    forget_the_server(db)
    job_id = enqueue(store)
    store.run(calls.complete_many(claim_many(store), ["null"] * 2))

    made = store.run(calls.partitions())

    assert made == 3
    assert job_id // 1_000_000 > 8_000_000
    assert db.execute("select count(*) from faultline.ledger_default").fetchone() == (0,)
    assert store.run(calls.partitions()) == 0


@pytest.mark.parametrize("verb", ["complete", "complete_many", "fail"])
def test_an_attempt_that_ends_while_its_range_is_made_is_recorded_again(store, db, session, verb):
    """PostgreSQL refuses the entry in the default partition: that says nothing about the attempt."""
    db.execute("select setval('faultline.places', 9000000)")
    enqueue(store)
    lease = claim_one(store)
    call = {
        "complete": calls.complete(lease, "null"),
        "complete_many": calls.complete_many([lease], ["null"]),
        "fail": calls.fail(lease, "boom", timedelta(0)),
    }[verb]
    leader, worker = session(), session()
    leader.begin()
    leader.run(calls.partitions())
    ended = worker.start_waiting(call, behind=leader)
    leader.commit()

    with pytest.raises(ServerUnavailable, match="try again"):
        ended.result(60)

    worker.run(call)
    assert db.execute("select count(*) from faultline.ledger_9").fetchone() == (1,)


def test_a_store_goes_on_after_a_restart_of_its_server():
    with a_primary() as primary:
        migrate(primary.dsn())
        store = Store(primary.dsn())
        first = enqueue(store)
        store.close()
        primary.halt("fast")
        primary.resume()
        again = Store(primary.dsn())

        ids = [enqueue(again) for _ in range(2)]
        again.close()

    assert ids[0] > first + 1_000_000
    assert ids[1] == ids[0] + 1


@pytest.mark.parametrize("missing", ["pg_current_wal_lsn", "pg_control_system"])
def test_a_server_that_tells_little_of_itself_is_installed_and_worked_on(empty_database, missing):
    with psycopg.connect(empty_database, autocommit=True) as conn:
        conn.execute(f"alter function pg_catalog.{missing}() rename to {missing}_away")
    migrate(empty_database)
    store = Store(empty_database)

    first = enqueue(store)
    token = claim_one(store).token
    made = store.run(calls.make_round(timedelta(seconds=1)))
    store.close()

    assert (first, token, made.mine) == (1, 1, True)
