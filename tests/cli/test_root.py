"""The command line as a whole: its help, its errors, its exit codes."""

import pytest

from faultline.cli.exit_codes import exit_code_of, line_of
from faultline.cli.root import COMMANDS
from faultline.errors import ConfigError, ServerFailed


def test_help_lists_every_command_with_a_line_about_it(run):
    shown = run("--help")

    assert shown.exit_code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in shown.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_the_options_of_all(run, command):
    shown = run(command, "--help")

    assert shown.exit_code == 0
    assert "--dsn DSN" in shown.stdout
    assert "tokens as strings" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_what_is_not_understood_exits_with_2_and_one_line(run):
    for words in (["frobnicate"], ["jobs", "list", "--colour"], ["jobs", "show"], ["jobs", "show", "seven"]):
        refused = run(*words)

        assert refused.exit_code == 2
        assert refused.stdout == ""
        assert len(refused.stderr.splitlines()) == 1
        assert refused.stderr.startswith("faultline: ")


def test_without_a_database_one_line_says_how_to_name_one(run):
    refused = run("jobs", "list")

    assert refused.exit_code == 2
    assert "set FAULTLINE_DSN" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_server_that_is_not_there_exits_with_1_and_no_password(run):
    refused = run("--dsn", "postgresql://app:topsecret@127.0.0.1:1/shop", "jobs", "list")

    assert refused.exit_code == 1
    assert "cannot connect to postgresql://app@127.0.0.1:1/shop" in refused.stderr
    assert "topsecret" not in refused.output
    assert len(refused.stderr.splitlines()) == 1


def test_a_database_without_our_schema_exits_with_1_and_says_migrate(run, empty_database):
    refused = run("--dsn", empty_database, "queues", "list")

    assert refused.exit_code == 1
    assert "run `faultline migrate`" in refused.stderr


def test_an_option_of_all_counts_before_the_command_and_after_it(run, database):
    assert run("--dsn", database, "jobs", "list").exit_code == 0
    assert run("jobs", "list", "--dsn", database).exit_code == 0
    assert run("jobs", "--output", "json", "list", "--dsn", database).stdout == "[]\n"
    assert run("--dsn", "host=/nowhere", "jobs", "list", "--dsn", database).exit_code == 0


def test_the_environment_names_the_database_too(run, database, monkeypatch):
    monkeypatch.setenv("FAULTLINE_DSN", database)

    assert run("jobs", "list").exit_code == 0


def test_an_unforeseen_error_is_one_line_and_a_traceback_only_with_debugging(run, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("a bug\nof two lines")

    monkeypatch.setattr("faultline.cli.manage.version.platform.python_version", fail)

    told = run("version")
    assert told.exit_code == 1
    assert told.stderr.startswith("faultline: ZeroDivisionError: a bug of two lines (")
    assert len(told.stderr.splitlines()) == 1

    monkeypatch.setenv("FAULTLINE_DEBUG", "1")
    assert isinstance(run("version").exception, ZeroDivisionError)


def test_every_error_becomes_one_safe_line():
    assert line_of(ServerFailed("first\n  second\x1b[31m")) == r"first second\x1b[31m"
    assert line_of(ConfigError("host=db password=hush")) == "host=db password=***"
    assert exit_code_of(ServerFailed("x")) == 1
    assert exit_code_of(ConfigError("x")) == 2
    assert exit_code_of(KeyboardInterrupt()) == 130


def test_version_tells_the_schema_it_knows(run):
    assert "schema" in run("version").stdout
    assert '"psycopg_impl"' in run("version", "--output", "json").stdout
