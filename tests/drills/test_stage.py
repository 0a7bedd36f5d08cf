"""A drill plays in a database of its own, or in a corner of the user's, and leaves neither behind."""

import contextlib
import secrets

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from faultline.errors import CannotConnect, InputError, SchemaMissing
from faultline.lab.drills.run_drill import DrillRequest, run_drill, run_drills
from faultline.lab.drills.stage.drill_database import stage
from faultline.store.pool import Store
from tests.support import contents, enqueue

MOVED_BY_ANY_WORKER = {"rounds", "settings"}


@pytest.fixture
def modest(database):
    """A DSN of `database` whose role may work there and make schemas, but no databases."""
    name = f"modest_{secrets.token_hex(4)}"
    with psycopg.connect(database, autocommit=True) as conn:
        role = Identifier(name)
        conn.execute(SQL("create role {} login password 'modest' nocreatedb").format(role))
        conn.execute(SQL("grant create on database {} to {}").format(Identifier(conn.info.dbname), role))
        conn.execute(SQL("grant usage on schema faultline to {}").format(role))
        conn.execute(SQL("grant execute on all functions in schema faultline to {}").format(role))
        yield make_conninfo(database, options=f"-c role={name}")
        conn.execute(SQL("drop owned by {0}; drop role {0}").format(role).as_string().encode())


def test_a_stage_is_a_database_of_its_own_and_goes(server, db_names):
    with stage(server.dsn()) as place:
        assert place.own_database
        assert place.schema in db_names()
    assert place.schema not in db_names()


def test_a_stage_goes_when_the_drill_fails(server, db_names):
    with contextlib.suppress(RuntimeError), stage(server.dsn()) as place:
        raise RuntimeError
    assert place.schema not in db_names()


def test_what_a_killed_drill_left_behind_is_cleared_up_by_the_next(server, db_names):
    left = f"faultline_drill_{secrets.token_hex(4)}"
    server.create_database(left)

    with stage(server.dsn()):
        assert left not in db_names()


def test_two_stages_at_once_do_not_meet(server):
    with stage(server.dsn()) as one, stage(server.dsn()) as other, one.connect() as conn, other.connect():
        assert one.dsn != other.dsn
        conn.execute("insert into effects (job_id, token, worker, wrote) values (1, 1, 'A', 'x')")


def test_where_no_database_may_be_made_it_plays_in_a_corner_of_the_users(modest, database, console):
    store = Store(database)
    theirs = [enqueue(store, queue="default") for _ in range(3)]
    store.close()

    code = run_drill("worker-crash", dsn=modest, console=console)

    assert code == 0, console.file.getvalue()
    with psycopg.connect(database) as conn:
        untouched = conn.execute("select id, attempt, token from faultline.active order by id").fetchall()
        schemas = conn.execute(
            "select count(*) from pg_namespace where starts_with(nspname, 'faultline_drill')"
        ).fetchone()
    assert untouched == [(job, 0, 0) for job in theirs]
    assert schemas == (0,)


def test_a_corner_needs_faultlines_schema(modest, database):
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("drop schema faultline cascade")

    with pytest.raises(SchemaMissing), stage(modest):
        pass


def test_a_server_that_is_not_there_is_one_clear_error(console):
    with pytest.raises(CannotConnect, match="check FAULTLINE_DSN"):
        run_drill("lease-race", dsn="host=/nowhere", console=console)


def test_a_drill_changes_nothing_in_the_users_database(database, console):
    before = contents(database)

    assert run_drill("lease-race", dsn=database, console=console) == 0

    assert contents(database) == before


def test_in_place_it_leaves_nothing_of_itself_in_the_users_database(database, console):
    """As the tables' owner it takes away all its own, and nothing else's."""
    before = contents(database)

    code = run_drills(["worker-crash"], DrillRequest(dsn=database, in_place=True), console)

    assert code == 0, console.file.getvalue()
    after = contents(database)
    assert {name for name, rows in after.items() if rows != before.get(name, [])} <= MOVED_BY_ANY_WORKER


def test_a_drill_that_stops_its_server_is_not_played_on_a_borrowed_one(database, console):
    with pytest.raises(InputError, match="database-restart needs a server of its own"):
        run_drill("database-restart", dsn=database, console=console)
