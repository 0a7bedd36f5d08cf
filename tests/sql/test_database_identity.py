"""database_identity: equal for two connections to one database, different for two databases of a server."""

import psycopg
from psycopg.conninfo import make_conninfo

from faultline.store import calls
from faultline.store.pool import Store
from tests.conftest import a_database

IDENTITY = "select faultline.database_identity()"


def test_two_connections_to_one_database_have_the_same_answer(database, store):
    mine = store.run(calls.database_identity())

    with psycopg.connect(make_conninfo(database, application_name="another")) as conn:
        assert conn.execute(IDENTITY).fetchone() == (mine,)


def test_two_databases_of_one_server_differ(server, template, database):
    others = a_database(server, template)
    with psycopg.connect(database) as one, psycopg.connect(next(others)) as other:
        assert one.execute(IDENTITY).fetchone() != other.execute(IDENTITY).fetchone()
    next(others, None)


def test_it_is_no_matter_of_superusers(db, database):
    db.execute("create role d7_identity")
    try:
        db.execute("grant usage on schema faultline to d7_identity")
        db.execute("grant execute on function faultline.database_identity to d7_identity")
        db.execute("set role d7_identity")
        assert db.execute(IDENTITY).fetchone()
    finally:
        db.execute("reset role; drop owned by d7_identity; drop role d7_identity")


def test_the_store_is_the_same_as_the_view_of_the_server(database):
    store = Store(database)
    with psycopg.connect(database) as conn:
        (cluster,) = conn.execute("select cluster from faultline.server_state()").fetchone()

    assert store.run(calls.database_identity()).split(":")[0] == str(cluster)
    store.close()
