"""Starting where nothing can be done: one clear error, and no half-started worker."""

import asyncio

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.config import Settings
from faultline.errors import (
    CannotConnect,
    ConfigError,
    FaultlineError,
    PermissionDenied,
    ReadOnlyServer,
    SchemaMissing,
    SchemaOutdated,
)
from faultline.runtime.run_worker import work
from tests.worker.harness import eventually, execute, quick, registry, rows


def start(dsn: str | None) -> int:
    return asyncio.run(work(registry(), Settings(dsn=dsn), quick(), until_empty=True))


@pytest.mark.parametrize(
    ("dsn", "error"),
    [
        (None, ConfigError),
        ("host=127.0.0.1 port=1 dbname=nowhere password=secret", CannotConnect),
        ("this is no dsn", ConfigError),
    ],
)
def test_a_wrong_dsn_is_one_clear_error(dsn, error):
    with pytest.raises(error) as raised:
        start(dsn)

    assert "FAULTLINE_DSN" in str(raised.value)
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_database_without_the_schema_is_one_clear_error(empty_database):
    with pytest.raises(SchemaMissing, match="faultline migrate"):
        start(empty_database)


def test_an_old_schema_is_one_clear_error(database):
    execute(
        database,
        "delete from faultline.migrations where number = (select max(number) from faultline.migrations)",
    )

    with pytest.raises(SchemaOutdated, match="faultline migrate"):
        start(database)


def test_d14_a_read_only_server_is_one_clear_error(database):
    name = conninfo_to_dict(database)["dbname"]
    execute(database, f'alter database "{name}" set default_transaction_read_only = on')

    with pytest.raises(ReadOnlyServer, match="primary"):
        start(database)


def test_a_role_that_may_do_nothing_is_one_clear_error(database):
    name = conninfo_to_dict(database)["dbname"]
    role = f"nobody_{name}"
    execute(database, f'create role "{role}" login')
    try:
        with pytest.raises((PermissionDenied, CannotConnect)) as raised:
            start(make_conninfo(database, user=role))
        assert "\n" not in str(raised.value)
    finally:
        execute(database, f'drop role "{role}"')


def test_a_failed_start_leaves_nothing_behind(database):
    execute(database, "drop function faultline.worker_started")

    with pytest.raises(FaultlineError):
        start(database)

    others = (
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    )
    eventually(lambda: rows(database, others) == [(0,)])
