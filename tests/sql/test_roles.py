"""A role with nothing but the verbs can work and can do nothing else; and no search_path matters."""

import secrets
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from faultline.errors import PermissionDenied
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import LEASE, claim_many, claim_one, enqueue, state_of


@pytest.fixture(scope="module")
def database(shared):
    """Roles come and go, so one database serves all."""
    return shared


@pytest.fixture
def role(db):
    """The name of a role that may log in and no more."""
    name = f"role_{secrets.token_hex(6)}"
    db.execute(f"create role {name} login")
    yield name
    db.execute(f"drop owned by {name}")
    db.execute(f"drop role {name}")


@pytest.fixture
def least(database, db, role):
    """A store that speaks as a role with the grants that our own error message asks for."""
    db.execute(f"grant usage on schema faultline to {role}")
    db.execute(f"grant execute on all functions in schema faultline to {role}")
    store = Store(as_role(database, role))
    yield store
    store.close()


def as_role(dsn, role, **more):
    return make_conninfo(dsn, user=role, **more)


def test_the_public_may_do_nothing(database, role):
    with psycopg.connect(as_role(database, role), autocommit=True) as conn:
        for query in (
            "select faultline.enqueue('t')",
            "select * from faultline.jobs",
            "select faultline.now()",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(query)


def test_the_public_may_execute_no_function_even_with_the_schema_open(database, db, role):
    db.execute(f"grant usage on schema faultline to {role}")

    allowed = db.execute(
        "select oid::regprocedure::text from pg_proc where pronamespace = 'faultline'::regnamespace"
        " and has_function_privilege(%s, oid, 'execute')",
        [role],
    ).fetchall()

    assert allowed == []


def test_a_role_without_the_grant_is_told_which_one(database, role):
    store = Store(as_role(database, role))

    with pytest.raises(PermissionDenied, match=f"grant usage on schema faultline to {role}"):
        store.run(calls.get(1))


def test_a_role_with_the_verbs_alone_can_do_a_workers_work(least, store):
    job_id = enqueue(least, queue="least")
    lease = claim_one(least, queues=("least",))
    least.run(calls.heartbeat([lease], LEASE))
    least.run(calls.fence(lease))
    least.run(calls.complete(lease, "null"))
    least.run(calls.round_(LEASE))
    least.run(calls.reap())
    least.run(calls.promote())
    least.run(calls.rescue())
    least.run(calls.wake("default"))

    assert state_of(least, job_id) == "succeeded"
    assert least.run(calls.outcome(lease)) == "succeeded"


@pytest.mark.parametrize(
    "query",
    [
        "select * from faultline.active",
        "select claim from faultline.ledger",
        "update faultline.active set token = 1",
        "delete from faultline.ledger",
        "insert into faultline.keys values ('default', 'k', 1, '', '1 day', null)",
        "update faultline.settings set base = 0",
        "select setval('faultline.tokens', 1)",
        "select nextval('faultline.places')",
        "truncate faultline.active",
        "drop function faultline.now()",
        "create function faultline.mine() returns int language sql return 1",
    ],
)
def test_a_role_with_the_verbs_alone_touches_no_table(least, store, database, role, query):
    enqueue(store)

    with (
        psycopg.connect(as_role(database, role)) as conn,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        conn.execute(query)


@pytest.mark.parametrize(
    "helper",
    [
        "faultline.put_back(array[1], 'dead', 'x', now())",
        "faultline.raise_dead(array[1])",
        "faultline.claimed_again(gen_random_uuid())",
        "faultline.take_key('default', 'k', 1, ''::bytea, '1 day', now())",
        "faultline.give_back(1, 1, gen_random_uuid(), 'released', '0', '')",
        "faultline.fetch_later(1)",
        "faultline.epoch()",
    ],
)
def test_a_helper_called_from_outside_has_no_rights_of_its_own(least, store, database, role, helper):
    """Only the verbs run as their owner."""
    enqueue(store)

    with (
        psycopg.connect(as_role(database, role)) as conn,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        conn.execute(f"select * from {helper}")


def test_a_role_that_reads_everything_but_claims_cannot_finish_anothers_job(least, store):
    enqueue(store, queue="held")
    held = claim_one(store, queues=("held",))

    answers = least.run(calls.complete_many([held._replace(claim=uuid4())], ["null"]))

    assert [answer.answer for answer in answers] == ["refused"]
    assert state_of(store, held.job_id) == "running"


EVIL = """
create schema evil;
grant usage on schema evil to {role};
create function evil.clock_timestamp() returns timestamptz language sql as
  $$ select 'infinity'::timestamptz $$;
create function evil.set_config(text, text, boolean) returns text language plpgsql as
  $$ begin raise 'evil'; end $$;
create function evil.nextval(regclass) returns bigint language sql as $$ select 1::bigint $$;
create function evil.nextval(text) returns bigint language sql as $$ select 1::bigint $$;
create function evil.unnest(bigint[]) returns setof bigint language sql as $$ select 1::bigint $$;
create function evil.pg_control_system() returns table (system_identifier bigint) language sql as
  $$ select 1::bigint $$;
create function evil.sha256(bytea) returns bytea language sql as $$ select ''::bytea $$;
create function evil.lt(timestamptz, timestamptz) returns boolean language sql as $$ select true $$;
create operator evil.< (leftarg = timestamptz, rightarg = timestamptz, function = evil.lt);
create function evil.eq(uuid, uuid) returns boolean language sql as $$ select true $$;
create operator evil.= (leftarg = uuid, rightarg = uuid, function = evil.eq);
create table evil.active (id bigint, token bigint, claim uuid);
create table evil.lanes (id bigint);
"""


def evil_store(database, db, role):
    db.execute(EVIL.format(role=role))
    return Store(as_role(database, role, options="-c search_path=evil,pg_temp,faultline,pg_catalog"))


def test_no_search_path_changes_what_a_verb_does(least, store, database, db, role):
    evil = evil_store(database, db, role)
    ids = [enqueue(evil, queue="evil") for _ in range(2)]
    held, mine = claim_many(evil, queues=("evil",))

    answers = evil.run(calls.complete_many([held._replace(claim=uuid4()), mine], ["null", "null"]))
    reaped = evil.run(calls.reap())
    evil.close()

    assert ids == sorted(set(ids))
    assert [answer.job_id for answer in answers] == [held.job_id]
    assert reaped == []
    assert state_of(store, held.job_id) == "running"
    assert state_of(store, mine.job_id) == "succeeded"


def test_no_temporary_table_takes_the_place_of_ours(least, store, database, role):
    enqueue(store, queue="ours")

    with psycopg.connect(as_role(database, role), autocommit=True) as conn:
        conn.execute("create temp table active (like pg_catalog.pg_class)")
        conn.execute(
            "create temp table lanes"
            " (id int, queue text, priority int, paused boolean, floor bigint, top bigint)"
        )
        taken = conn.execute(
            "select queue from faultline.claim(array['ours'], 1, '15 s', gen_random_uuid())"
        ).fetchall()

    assert taken == [("ours",)]


def test_every_verb_that_runs_as_its_owner_has_a_fixed_search_path(db):
    loose = db.execute(
        "select oid::regprocedure::text from pg_proc"
        " where pronamespace = 'faultline'::regnamespace and prosecdef"
        " and not coalesce(proconfig @> array['search_path=pg_catalog, pg_temp'], false)"
    ).fetchall()

    assert loose == []


def test_every_verb_carries_its_own_planner_settings(db):
    bare = db.execute(
        "select oid::regprocedure::text from pg_proc"
        " where pronamespace = 'faultline'::regnamespace and prosecdef"
        " and not coalesce(proconfig @> array['plan_cache_mode=force_generic_plan'], false)"
    ).fetchall()
    claim = db.execute("select proconfig from pg_proc where oid = 'faultline.claim'::regproc").fetchone()[0]

    assert bare == []
    assert {
        "enable_seqscan=off",
        "enable_bitmapscan=off",
        "enable_hashjoin=off",
        "enable_mergejoin=off",
        "jit=off",
    } <= set(claim)


@pytest.mark.parametrize(
    "setting",
    [
        "TimeZone=Pacific/Auckland",
        "DateStyle=German",
        "IntervalStyle=sql_standard",
        "standard_conforming_strings=off",
        "default_transaction_isolation=serializable",
        "extra_float_digits=-5",
        "bytea_output=escape",
    ],
)
def test_no_setting_of_the_session_changes_what_a_verb_does(store, database, setting):
    altered = Store(make_conninfo(database, options=f"-c {setting}"))
    job_id = enqueue(altered, key=setting, args='{"n": 0.1}', queue="altered")
    same = enqueue(store, key=setting, args='{"n": 0.1}', queue="altered")

    lease = claim_one(altered, queues=("altered",))
    until = altered.run(calls.get(job_id)).lease_until
    altered.run(calls.complete(lease, "0.1"))
    altered.close()

    assert same == job_id
    assert until is not None
    assert store.run(calls.get(job_id)).result == 0.1
