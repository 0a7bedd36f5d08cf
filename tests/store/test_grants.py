"""Grants survive a migration, which makes every function and view anew."""

import secrets

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from faultline.store import calls
from faultline.store.migrate import check, migrate
from tests.support import enqueue


@pytest.fixture
def prefix(db):
    """What the names of a test's roles begin with; they are gone after it."""
    name = f"m{secrets.token_hex(5)}_"
    yield name
    roles = db.execute("select rolname from pg_roles where starts_with(rolname, %s)", [name]).fetchall()
    for (role,) in roles:
        db.execute(f"reassign owned by {role} to current_user")
        db.execute(f"drop owned by {role} cascade")
    for (role,) in roles:
        db.execute(f"drop role {role}")


ACLS = """
select 'function ' || proname, array(select acl::text from unnest(proacl) as acl order by 1)
from pg_proc where pronamespace = 'faultline'::regnamespace
union all
select 'relation ' || relname, array(select acl::text from unnest(relacl) as acl order by 1)
from pg_class where relnamespace = 'faultline'::regnamespace and relkind = 'v'
order by 1
"""


def migrate_anew(db, dsn):
    db.execute("update faultline.settings set functions = ''")
    return migrate(dsn)


def test_what_groups_may_is_the_same_after_a_migration(db, store, database, prefix):
    store.run(calls.make_roles(prefix))
    before = db.execute(ACLS).fetchall()

    assert migrate_anew(db, database).functions_differ

    assert db.execute(ACLS).fetchall() == before
    assert any(f"{prefix}worker=X" in acl for _, acls in before for acl in acls)


def test_what_people_granted_is_the_same_after_a_migration(db, database, prefix):
    db.execute(f"create role {prefix}joe; create role {prefix}ann")
    db.execute(f"grant execute on function faultline.health, faultline.claim to {prefix}joe")
    db.execute(f"grant execute on function faultline.reap to {prefix}ann with grant option")
    db.execute(f"grant select on faultline.queue_lag to {prefix}joe")
    db.execute(f"grant select on faultline.jobs to {prefix}ann with grant option")
    before = db.execute(ACLS).fetchall()

    migrate_anew(db, database)

    assert db.execute(ACLS).fetchall() == before


def test_what_the_public_was_granted_is_not(db, database):
    db.execute("grant execute on all functions in schema faultline to public")
    db.execute("grant select on faultline.jobs to public")

    migrate_anew(db, database)

    (open_,) = db.execute(
        "select count(*) from pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) as given"
        " where pronamespace = 'faultline'::regnamespace and given.grantee = 0"
    ).fetchone()
    assert open_ == 0


def test_a_grant_beyond_its_duty_is_taken_from_a_group(db, store, database, prefix):
    store.run(calls.make_roles(prefix))
    db.execute(f"grant execute on function faultline.claim to {prefix}producer")

    migrate_anew(db, database)

    (may,) = db.execute(
        "select has_function_privilege(%s, 'faultline.claim'::regproc, 'execute')", [f"{prefix}producer"]
    ).fetchone()
    assert not may


def test_a_role_that_is_gone_stops_no_migration(db, store, database, prefix):
    store.run(calls.make_roles(prefix))
    db.execute(f"drop owned by {prefix}reader")
    db.execute(f"drop role {prefix}reader")

    migrate_anew(db, database)

    assert check(database).is_current


def owners(db):
    return {
        owner
        for (owner,) in db.execute(
            "select pg_get_userbyid(proowner) from pg_proc where pronamespace = 'faultline'::regnamespace"
        )
    }


def test_a_migration_by_another_role_leaves_the_functions_to_their_owner(db, store, database, prefix):
    """A superuser who migrated would leave verbs that run as a superuser."""
    store.run(calls.make_roles(prefix, own=True))

    migrate_anew(db, database)

    assert owners(db) == {f"{prefix}owner"}


def test_a_migrator_migrates_without_being_anything_else(db, store, database, prefix):
    store.run(calls.make_roles(prefix, own=True))
    db.execute(f"create role {prefix}deploy login; grant {prefix}migrator to {prefix}deploy")
    deploy = make_conninfo(database, user=f"{prefix}deploy")

    assert check(deploy).is_current
    assert migrate_anew(db, deploy).functions_differ

    assert check(deploy).is_current
    assert owners(db) == {f"{prefix}owner"}
    with psycopg.connect(deploy) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute("select * from faultline.active")


def test_an_owner_with_createrole_needs_no_superuser(db, empty_database, prefix):
    """It gives everything away, to a role it cannot become any more."""
    with psycopg.connect(empty_database, autocommit=True) as boss:
        boss.execute(f"create role {prefix}app login createrole")
        boss.execute(f'alter database "{boss.info.dbname}" owner to {prefix}app')
    app = make_conninfo(empty_database, user=f"{prefix}app")
    migrate(app)

    with psycopg.connect(app, autocommit=True) as conn:
        conn.execute("select faultline.make_roles(%s)", [f"{prefix}g_"])
        conn.execute("select faultline.make_roles(%s, own => true)", [f"{prefix}g_"])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("select * from faultline.active")
        if conn.info.server_version >= 160000:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(f"set role {prefix}g_owner")

    with psycopg.connect(empty_database, autocommit=True) as boss:
        assert owners(boss) == {f"{prefix}g_owner"}
        boss.execute(f'alter database "{boss.info.dbname}" owner to current_user')
        boss.execute(f"drop owned by {prefix}g_owner cascade")
        for duty in ("producer", "worker", "watchdog", "operator", "reader", "server", "migrator"):
            boss.execute(f"drop owned by {prefix}g_{duty}")
        boss.execute(f"drop owned by {prefix}app cascade")


def test_jobs_go_on_after_everything_changed_hands(db, store, database, prefix):
    before = enqueue(store)
    store.run(calls.make_roles(prefix, own=True))

    after = enqueue(store)
    store.run(calls.partitions())
    store.run(calls.prune())

    assert after > before
