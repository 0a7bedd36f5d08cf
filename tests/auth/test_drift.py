"""`doctor --strict` finds what was changed by hand, and who can go around the verbs; its remedies mend it."""

import secrets

import psycopg
import pytest

from faultline.doctor.access_facts import gather
from faultline.doctor.drift import findings
from faultline.doctor.shipped_schema import role_grants, shipped
from faultline.store.migrate import migrate
from faultline.store.sql_files import current


@pytest.fixture(scope="module")
def database(shared):
    """What a test changes is rolled back, so one database serves all."""
    return shared


@pytest.fixture(scope="module")
def prefix(shared):
    """Group roles, with the schema owned by one of them; gone at the end."""
    name = f"d{secrets.token_hex(5)}_"
    with psycopg.connect(shared, autocommit=True) as conn:
        conn.execute("select faultline.make_roles(%s, own => true)", [name])
        yield name
        roles = conn.execute("select rolname from pg_roles where starts_with(rolname, %s)", [name]).fetchall()
        for (role,) in roles:
            conn.execute(f'drop owned by "{role}" cascade')
        for (role,) in roles:
            conn.execute(f'drop role "{role}"')


@pytest.fixture
def db(shared):
    """A session whose changes, to roles too, are gone after the test."""
    with psycopg.connect(shared) as conn:
        yield conn
        conn.rollback()


def found(db):
    return findings(gather(db))


def test_the_manifest_is_what_a_database_gets(db, prefix):
    """Every function, grant and view, as migrated, with nothing to find."""
    facts = gather(db)

    assert findings(facts) == []
    assert {function.name for function in facts.functions} == shipped().keys()
    assert len(shipped()) > 80


def test_the_duties_of_the_manifest_are_those_of_the_database(db):
    assert set(db.execute("select * from faultline.role_grants()").fetchall()) == role_grants()


def test_every_duty_names_what_there_is(db):
    there = {
        ("function", name)
        for (name,) in db.execute(
            "select proname from pg_proc where pronamespace = 'faultline'::regnamespace"
        )
    } | {
        ("view", name)
        for (name,) in db.execute(
            "select relname from pg_class where relnamespace = 'faultline'::regnamespace and relkind = 'v'"
        )
    }

    assert {(kind, name) for _, kind, name in role_grants()} <= there


def test_whatever_runs_as_its_owner_is_the_duty_of_a_role(db):
    """A verb without a grant is useless; a helper with a grant is a hole."""
    definers = {function.name for function in shipped().values() if function.definer}
    granted = {name for _, kind, name in role_grants() if kind == "function"}

    assert definers - granted == {"wal_written"}
    # a view calls the last two
    assert granted - definers == {"now", "wake", "wake_each", "act_as", "readable", "damage"}


SABOTAGE = {
    "alter function faultline.cancel security invoker": "function cancel runs with the rights of its caller",
    "alter function faultline.put_back security definer":
        "function put_back runs with the rights of its owner",
    "alter function faultline.claim reset search_path": "function claim has other settings: search_path",
    "alter function faultline.claim set search_path = public": "function claim has other settings",
    "grant execute on function faultline.claim to public": "function claim PUBLIC may call it",
    "grant execute on function faultline.claim to {p}producer": "function claim {p}producer may call it",
    "revoke execute on function faultline.claim from {p}worker": "function claim {p}worker may not call it",
    "grant select on faultline.active to {p}operator": "table active {p}operator has select",
    "grant select (claim) on faultline.active to {p}reader": "column active.claim {p}reader has select",
    "grant update on faultline.settings to public": "table settings PUBLIC has update",
    "grant usage on sequence faultline.tokens to {p}worker": "sequence tokens {p}worker has usage",
    "grant select on faultline.jobs to {p}reader": "view jobs {p}reader has select",
    "grant create on schema faultline to {p}worker": "schema faultline {p}worker has create",
    "grant usage on schema faultline to public": "schema faultline PUBLIC has usage",
    "alter role {p}operator login": "role {p}operator is more than it should be: login",
    "alter role {p}owner createrole": "role {p}owner is more than it should be: createrole",
    "alter role {p}worker bypassrls": "role {p}worker is more than it should be: bypassrls",
    "grant {p}operator to {p}producer": "role {p}producer is a member of {p}operator",
    "grant {p}owner to {p}worker": "role {p}worker is a member of {p}owner",
    "alter default privileges for role {p}owner grant select on tables to {p}reader": "future tables",
    "create role {p}joe login; grant {p}owner to {p}joe":
        "login {p}joe inherits {p}owner, and so reaches everything",
    "create role {p}joe login noinherit; grant {p}owner to {p}joe": "login {p}joe can become {p}owner",
    "create role {p}joe login; grant pg_read_all_data to {p}joe": "login {p}joe inherits pg_read_all_data",
    "create role {p}joe login noinherit; grant pg_write_all_data to {p}joe":
        "login {p}joe can become pg_write_all_data",
    "create role {p}mid; create role {p}joe login; grant {p}owner to {p}mid; grant {p}mid to {p}joe":
        "login {p}joe inherits {p}owner",
    "alter table faultline.keys owner to current_user": "table keys belongs to",
    "alter function faultline.reap owner to current_user": "function reap belongs to",
    "drop function faultline.refused": "function refused is missing",
    "create function faultline.mine() returns int language sql return 1": "function mine is none of ours",
    "create function faultline.reap(most text) returns int language sql return 1":
        "function reap is there in 2 forms",
    "create or replace function faultline.wake(queue text) returns void language sql as 'select null::void'":
        "function wake does not say what was shipped",
}  # fmt: skip


def said(db):
    return [f"{finding.about} {finding.said}" for finding in found(db)]


@pytest.mark.parametrize("sabotage", SABOTAGE)
def test_what_was_changed_by_hand_is_found(db, prefix, sabotage):
    db.execute(sabotage.format(p=prefix))

    expected = SABOTAGE[sabotage].format(p=prefix)
    assert [line for line in said(db) if line.startswith(expected)], said(db)
    assert all(finding.remedy for finding in found(db))


MENDED = [
    "grant execute on function faultline.claim to public",
    "grant select on faultline.active to {p}operator",
    "grant select (claim) on faultline.active to {p}reader",
    "grant create on schema faultline to {p}worker",
    "alter role {p}operator login",
    "grant {p}operator to {p}producer",
    "alter default privileges for role {p}owner grant select on tables to {p}reader",
]


@pytest.mark.parametrize("sabotage", MENDED)
def test_the_remedy_mends_it(db, prefix, sabotage):
    db.execute(sabotage.format(p=prefix))

    for finding in found(db):
        db.execute(finding.remedy)

    assert found(db) == []


@pytest.mark.parametrize(
    "sabotage",
    [
        "alter function faultline.claim reset search_path",
        "create function faultline.mine() returns int language sql return 1",
        "revoke execute on function faultline.claim from {p}worker",
    ],
)
def test_creating_the_functions_again_repairs_them_and_the_grants(db, database, prefix, sabotage):
    db.execute(sabotage.format(p=prefix))
    assert found(db)

    db.execute("update faultline.settings set functions = ''")
    db.commit()
    migrate(database)

    assert found(db) == []


def test_a_login_that_may_migrate_is_no_back_door(db, prefix):
    db.execute(f"create role {prefix}deploy login")
    db.execute(f"grant {prefix}migrator to {prefix}deploy")

    assert found(db) == []


def test_a_database_without_roles_is_warned_of_and_a_superuser_as_owner_is_bad(empty_database):
    migrate(empty_database)
    with psycopg.connect(empty_database) as conn:
        graded = {(finding.about, finding.grade) for finding in found(conn)}

    assert ("roles", "warn") in graded
    assert "bad" in {grade for about, grade in graded if about.startswith("role ")}


def test_the_public_is_taken_everything_in_the_making():
    """What a mutant takes away, another test must miss; here it is said in one place."""
    for what in ("functions", "tables", "sequences"):
        assert f"revoke all on all {what} in schema faultline from public;" in current()
