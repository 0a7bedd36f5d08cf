"""A database that cannot be reached, read or written: one clear line each, and no password in any."""

import asyncio
import secrets
import socket
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline import Faultline, errors
from faultline.store import calls
from faultline.store.migrate import migrate
from faultline.store.pool import AsyncStore, Store, async_store, plain_store
from faultline.store.sql_files import LATEST, migrations
from tests.support import enqueue, new_job

SECRET = "s3cr3t-pa55"


def by_store(dsn: str) -> None:
    store = Store(dsn)
    try:
        enqueue(store)
    finally:
        store.close()


def by_async_store(dsn: str) -> None:
    async def once() -> None:
        store = AsyncStore(dsn)
        try:
            await store.run(calls.enqueue(new_job()))
        finally:
            await store.close()

    asyncio.run(once())


def by_app(dsn: str | None) -> None:
    app = Faultline(dsn)

    @app.task
    def ping() -> None: ...

    try:
        ping.enqueue()
    finally:
        app.close()


def by_migrate(dsn: str) -> None:
    migrate(dsn)


@pytest.fixture(params=[by_store, by_async_store, by_app], ids=["store", "async store", "app"])
def use(request) -> Callable[[str], None]:
    """Each way to use a database for the first time."""
    way: Callable[[str], None] = request.param
    return way


def one_line(caught: pytest.ExceptionInfo[Exception]) -> str:
    """What was said: a line that says what to do, and no password, not even in what led to it."""
    said = str(caught.value)
    assert said
    assert "\n" not in said
    chain: list[BaseException] = [caught.value]
    while led_to_it := chain[-1].__cause__ or (
        None if chain[-1].__suppress_context__ else chain[-1].__context__
    ):
        chain.append(led_to_it)
    assert not [str(error) for error in chain if SECRET in str(error)]
    return said


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


WRONG_DSNS = {
    "no listener there": lambda: f"postgresql://app:{SECRET}@127.0.0.1:{free_port()}/shop",
    "no such host": lambda: f"postgresql://app:{SECRET}@nowhere.invalid/shop",
    "no such socket": lambda: f"host=/nonexistent user=app password={SECRET} dbname=shop",
    "no such word": lambda: f"hots=db password={SECRET}",
    "a password with a space": lambda: f"host=db password=my {SECRET}",
    "a password with a slash": lambda: f"postgresql://app:{SECRET}/x@db/shop",
    "a password with an at": lambda: f"postgresql://app:x@{SECRET}@nowhere.invalid/shop",
    "a password with a percent": lambda: f"postgresql://app:%zz{SECRET}@db/shop",
    "a port that is none": lambda: f"postgresql://app:{SECRET}@db:port/shop",
    "no DSN at all": lambda: "not a dsn",
    "an unclosed quote": lambda: f"host=db password='{SECRET}",
}


@pytest.mark.parametrize("case", WRONG_DSNS)
def test_a_wrong_dsn_is_told_in_one_line_without_its_password(use, case):
    with pytest.raises((errors.CannotConnect, errors.ConfigError)) as caught:
        use(WRONG_DSNS[case]())

    assert "check FAULTLINE_DSN" in one_line(caught)


def test_a_wrong_password_is_told_in_one_line(server, use):
    if not hasattr(server, "tcp_dsn"):
        pytest.skip("a borrowed server may ask for no password")

    with pytest.raises(errors.CannotConnect, match="password authentication failed") as caught:
        use(make_conninfo(server.tcp_dsn(), password=SECRET))

    one_line(caught)


def test_a_wrong_password_from_a_file_is_told_as_such(server, use, tmp_path):
    """libpq's last line says where the password was found, not what is wrong."""
    if not hasattr(server, "tcp_dsn"):
        pytest.skip("a borrowed server may ask for no password")
    known = conninfo_to_dict(server.tcp_dsn())
    file = tmp_path / "pgpass"
    file.write_text(f"*:*:*:{known['user']}:{SECRET}\n")
    file.chmod(0o600)
    without = {name: str(value) for name, value in known.items() if name != "password"}

    with pytest.raises(errors.CannotConnect, match="password authentication failed") as caught:
        use(make_conninfo("", **without, passfile=str(file)))

    one_line(caught)


def test_a_database_that_does_not_exist_is_told_in_one_line(database, use):
    with pytest.raises(errors.CannotConnect, match="does not exist") as caught:
        use(make_conninfo(database, dbname="nowhere", password=SECRET))

    one_line(caught)


def test_no_dsn_at_all_says_how_to_give_one(monkeypatch):
    monkeypatch.delenv("FAULTLINE_DSN", raising=False)

    with pytest.raises(errors.ConfigError, match="set FAULTLINE_DSN") as caught:
        by_app(None)

    one_line(caught)


def test_an_empty_dsn_is_refused_though_the_environment_names_one(monkeypatch, database):
    monkeypatch.setenv("FAULTLINE_DSN", database)

    with pytest.raises(errors.ConfigError, match="dsn is empty") as caught:
        by_app("")

    one_line(caught)


def test_a_missing_schema_says_migrate(empty_database, use):
    with pytest.raises(errors.SchemaMissing, match="run `faultline migrate`") as caught:
        use(make_conninfo(empty_database, password=SECRET))

    one_line(caught)


def test_an_old_schema_says_migrate(database, db, use):
    db.execute("delete from faultline.migrations where number = %s", [LATEST])
    before = migrations()[-2].number

    with pytest.raises(
        errors.SchemaOutdated, match=f"at {before}, .* needs {LATEST}; run `faultline migrate`"
    ) as caught:
        use(make_conninfo(database, password=SECRET))

    one_line(caught)


def test_a_schema_whose_functions_are_older_says_migrate(database, db, use):
    """As after a downgrade by hand: the number is right and what is called is not there."""
    db.execute("drop function faultline.enqueue")

    with pytest.raises(errors.SchemaOutdated, match="run `faultline migrate`") as caught:
        use(make_conninfo(database, password=SECRET))

    one_line(caught)


def test_a_too_new_schema_says_upgrade(database, db, use):
    db.execute("update faultline.settings set oldest_client = %s", [LATEST + 1])

    with pytest.raises(errors.SchemaTooNew, match="upgrade faultline-queue") as caught:
        use(make_conninfo(database, password=SECRET))

    one_line(caught)


def test_a_schema_that_is_newer_and_still_serves_us_is_used(database, db, use):
    """A worker of the previous release works on the new schema, unless that says otherwise."""
    db.execute("insert into faultline.migrations (number, name) values (%s, 'from_the_future')", [LATEST + 1])

    use(database)


def test_a_too_new_schema_is_not_migrated_back(database, db, nothing_changes):
    db.execute("insert into faultline.migrations (number, name) values (%s, 'from_the_future')", [LATEST + 1])

    with nothing_changes(), pytest.raises(errors.SchemaTooNew, match="upgrade faultline-queue") as caught:
        migrate(make_conninfo(database, password=SECRET))

    one_line(caught)


@pytest.fixture
def stranger(db: psycopg.Connection[Any]) -> Iterator[str]:
    """A role that may log in and nothing more."""
    name = f"stranger_{secrets.token_hex(4)}"
    db.execute(f"create role {name} login password '{SECRET}'".encode())
    yield name
    db.execute(f"drop owned by {name}".encode())
    db.execute(f"drop role {name}".encode())


def test_a_role_without_permission_is_told_which(database, stranger, nothing_changes, use):
    with (
        nothing_changes(),
        pytest.raises(errors.PermissionDenied, match=r"permission denied for schema|may not use") as caught,
    ):
        use(make_conninfo(database, user=stranger, password=SECRET))

    assert "grant" in one_line(caught)


def test_a_role_without_one_function_is_told_which(database, db, stranger, nothing_changes, use):
    db.execute(f"grant usage on schema faultline to {stranger}".encode())
    db.execute(f"grant execute on all functions in schema faultline to {stranger}".encode())
    db.execute(f"grant select on faultline.migrations, faultline.settings to {stranger}".encode())
    db.execute(f"revoke execute on function faultline.enqueue from {stranger}".encode())

    with nothing_changes(), pytest.raises(errors.PermissionDenied, match="enqueue") as caught:
        use(make_conninfo(database, user=stranger, password=SECRET))

    assert "grant" in one_line(caught)


def test_a_role_that_may_not_migrate_is_told_so(empty_database, server, template):
    name = f"stranger_{secrets.token_hex(4)}"
    with psycopg.connect(empty_database, autocommit=True) as conn:
        conn.execute(f"create role {name} login".encode())
        try:
            with pytest.raises(errors.PermissionDenied) as caught:
                migrate(make_conninfo(empty_database, user=name, password=SECRET))
        finally:
            conn.execute(f"drop role {name}".encode())

    one_line(caught)


def test_a_session_that_was_ended_is_told_as_the_server_going_away(database, db):
    """The first call after it may hear of it; the next one has a new connection."""
    store = Store(make_conninfo(database, password=SECRET))
    with store.connection() as conn:
        pid = conn.info.backend_pid
        db.execute("select pg_terminate_backend(%s, 5000)", [pid])
        with pytest.raises(errors.ServerUnavailable, match="try again") as caught:
            store.run_in(conn, calls.enqueue(new_job()))

    assert enqueue(store) > 0
    store.close()
    one_line(caught)


def test_an_async_session_that_was_ended_is_told_as_the_server_going_away(database, db):
    async def use() -> None:
        store = AsyncStore(make_conninfo(database, password=SECRET))
        async with store.connection() as conn:
            db.execute("select pg_terminate_backend(%s, 5000)", [conn.info.backend_pid])
            with pytest.raises(errors.ServerUnavailable, match="try again") as caught:
                await store.run_in(conn, calls.enqueue(new_job()))
        assert await store.run(calls.enqueue(new_job())) > 0
        await store.close()
        one_line(caught)

    asyncio.run(use())


def test_a_session_that_was_ended_while_idle_costs_no_call(database, db):
    """The pool checks a connection before it lends it: the next caller sees no error."""
    store = Store(database)
    enqueue(store)
    db.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )

    assert enqueue(store) > 0
    store.close()


class TestAServerThatIsGone:
    """On a server of its own, which is stopped under the store's feet."""

    @pytest.fixture
    def outage(self, monkeypatch) -> Iterator[Any]:
        from tests.promises.standby import a_primary

        for stores in (plain_store, async_store):
            monkeypatch.setattr(stores, "POOL_WAIT_SECONDS", 1.5)
        with a_primary() as private:
            migrate(private.dsn())
            yield private

    def test_is_told_in_one_line_and_is_found_again_when_it_is_back(self, outage):
        store = Store(make_conninfo(outage.dsn(), password=SECRET))
        enqueue(store)
        outage.halt("immediate")

        with pytest.raises((errors.ServerUnavailable, errors.CannotConnect)) as caught:
            enqueue(store)
        one_line(caught)
        with pytest.raises((errors.ServerUnavailable, errors.CannotConnect)) as caught:
            enqueue(store)
        one_line(caught)

        outage.resume()
        assert enqueue(store) > 0
        store.close()

    def test_is_told_in_one_line_to_async_code_too(self, outage):
        async def use() -> None:
            store = AsyncStore(make_conninfo(outage.dsn(), password=SECRET))
            await store.run(calls.enqueue(new_job()))
            outage.halt("immediate")
            with pytest.raises((errors.ServerUnavailable, errors.CannotConnect)) as caught:
                await store.run(calls.enqueue(new_job()))
            one_line(caught)
            outage.resume()
            assert await store.run(calls.enqueue(new_job())) > 0
            await store.close()

        asyncio.run(use())


def test_the_password_is_in_no_repr(database):
    dsn = make_conninfo(database, password=SECRET)
    assert conninfo_to_dict(dsn)["password"] == SECRET

    assert SECRET not in repr(Faultline(dsn))
    assert SECRET not in repr(Store(dsn))
