"""`faultline migrate`: install, check, print."""

import psycopg

from faultline.store.sql_files import LATEST


def test_migrate_installs_and_a_second_one_finds_nothing_to_do(run, empty_database):
    first = run("migrate", "--dsn", empty_database)
    second = run("migrate", "--dsn", empty_database)

    assert f"the schema is now at {LATEST}: applied 0001_words" in first.stdout
    assert second.stdout == f"the schema is current, at {LATEST}\n"


def test_check_exits_with_3_until_the_database_is_current(run, empty_database):
    before = run("migrate", "--check", "--dsn", empty_database)
    run("migrate", "--dsn", empty_database)
    after = run("migrate", "--check", "--dsn", empty_database)

    assert (before.exit_code, after.exit_code) == (3, 0)
    assert "0001_words" in before.stdout


def test_check_counts_what_is_missing(run, database):
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("delete from faultline.migrations where number = %s", [LATEST])

    assert "missing: 1 migration (" in run("migrate", "--check", "--dsn", database).stdout


def test_check_notices_functions_of_another_version(run, database):
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("update faultline.settings set functions = 'another'")

    checked = run("migrate", "--check", "--dsn", database)

    assert checked.exit_code == 3
    assert "its functions" in checked.stdout


def test_the_printed_script_installs_by_itself(run, empty_database):
    script = run("migrate", "--sql").stdout
    with psycopg.connect(empty_database, autocommit=True) as conn:
        conn.execute(script)

    assert run("migrate", "--check", "--dsn", empty_database).exit_code == 0


def test_json_tells_what_is_missing(run, empty_database):
    checked = run("migrate", "--check", "--output", "json", "--dsn", empty_database)

    assert '"current": false' in checked.stdout
    assert '"0001_words"' in checked.stdout
