"""What `doctor` says where it cannot see, and where a table of ours stays locked."""

import json
import secrets
import time

import psycopg
import pytest


@pytest.fixture
def prefix(server):
    """The beginning of roles' names; the roles are gone at the end."""
    name = f"t{secrets.token_hex(5)}_"
    yield name
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        roles = conn.execute("select rolname from pg_roles where starts_with(rolname, %s)", [name]).fetchall()
        for (role,) in roles:
            conn.execute(f"drop role {role}")


@pytest.fixture
def own(database, db, prefix):
    """The schema, owned by a role of its own, as `roles create --own` leaves it; that role's name."""
    db.execute("select faultline.make_roles(%s, own => true)", [prefix])
    yield f"{prefix}owner"
    roles = db.execute("select rolname from pg_roles where starts_with(rolname, %s)", [prefix]).fetchall()
    for (role,) in roles:
        db.execute(f"drop owned by {role} cascade")


def examined(on, name):
    checks = json.loads(on("--output", "json", "doctor").stdout)["checks"]
    (found,) = [check for check in checks if check["name"] == name]
    return found


def metrics(db):
    return dict(db.execute("select name, value from faultline.metrics() where labels = '{}'").fetchall())


def test_an_owner_of_its_own_sees_the_transactions_of_others(on, own, database, db):
    with psycopg.connect(database) as other:
        other.execute("select 1")
        time.sleep(0.1)
        seen = db.execute("select oldest_transaction_seconds from faultline.doctor()").fetchone()[0]

        assert seen >= 0.1
        assert metrics(db)["oldest_transaction_seconds"] >= 0.1
        found = examined(on, "transactions")

    assert (found["grade"], found["said"].startswith("the oldest is ")) == ("ok", True)


def test_where_the_owner_cannot_see_transactions_doctor_warns_and_the_metric_is_absent(on, own, db):
    db.execute(f"revoke pg_read_all_stats from {own}")

    found = examined(on, "transactions")
    figures = metrics(db)

    assert found["grade"] == "warn"
    assert found["said"].startswith("cannot see them")
    assert found["remedy"] == f"grant pg_read_all_stats to {own}"
    assert "oldest_transaction_seconds" not in figures
    assert "claims" in figures

    db.execute(found["remedy"])

    assert examined(on, "transactions")["grade"] == "ok"
    assert "oldest_transaction_seconds" in metrics(db)


def test_a_caller_that_may_not_grant_that_sight_still_makes_the_roles(db, prefix, own):
    """From 16 on CREATEROLE alone is not enough for it; before, it is."""
    db.execute(f"create role {prefix}deployer createrole")
    db.execute(f"grant {own} to {prefix}deployer")
    db.execute(f"revoke pg_read_all_stats from {own}")
    for duty in ("producer", "worker", "watchdog", "operator", "reader", "server", "migrator"):
        db.execute(f"grant {prefix}{duty} to {prefix}deployer with admin option")

    with db.transaction():
        db.execute(f"set local role {prefix}deployer")
        db.execute("select faultline.make_roles(%s)", [prefix])
        (version,) = db.execute("select current_setting('server_version_num')::int").fetchone()

    (sees,) = db.execute("select pg_has_role(%s, 'pg_read_all_stats', 'usage')", [own]).fetchone()
    assert sees is (version < 160_000)


def test_doctor_gives_up_waiting_for_a_table_that_stays_locked(on, database):
    with psycopg.connect(database) as other:
        other.execute("lock table faultline.ledger_default in access exclusive mode")
        found = examined(on, "examination")

    assert found["grade"] == "bad"
    assert found["said"] == "a table of Faultline stayed locked by another session"
    assert "pg_locks" in found["remedy"]
