"""One process and its server."""

import os
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from faultline.embedded import EmbeddedServer
from faultline.errors import ServerFailed
from tests.embedded.others import is_gone


def ask(dsn: str, question: str) -> str:
    with psycopg.connect(dsn) as conn:
        row = conn.execute(question).fetchone()
    assert row
    return str(row[0])


def test_a_private_server_answers_on_its_socket_and_is_gone_with_its_folder_after_close():
    with EmbeddedServer.open() as server:
        assert ask(server.dsn(), "show server_version").startswith(server.version)
        assert ask(server.dsn(), "show fsync") == "on"
        sockets = Path(ask(server.dsn(), "show unix_socket_directories"))

    assert is_gone(server.folder)
    assert not server.folder.exists()
    assert not sockets.exists()


def test_tcp_asks_for_the_password_and_listens_on_the_loopback_alone():
    with EmbeddedServer.open() as server:
        assert ask(server.tcp_dsn(), "select host(inet_server_addr())") == "127.0.0.1"
        assert ask(server.dsn(), "show listen_addresses") == "127.0.0.1"

        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(make_conninfo(server.tcp_dsn(), password="guess"))

        assert (server.folder / "password").stat().st_mode & 0o077 == 0


def test_no_other_account_can_reach_the_socket():
    with EmbeddedServer.open() as server:
        sockets = Path(ask(server.dsn(), "show unix_socket_directories"))

        assert sockets.stat().st_mode & 0o077 == 0


def test_data_in_a_named_folder_is_there_after_a_restart(folder):
    with EmbeddedServer.open(folder) as server:
        server.create_database("kept")
        identity = ask(server.dsn(), "select system_identifier from pg_control_system()")

    with EmbeddedServer.open(folder) as server:
        assert ask(server.dsn("kept"), "select current_database()") == "kept"
        assert ask(server.tcp_dsn(), "select system_identifier from pg_control_system()") == identity


def test_kept_data_has_an_identity_of_its_own(tmp_path):
    """A queue tells by the system identifier that its data came from another server."""
    question = "select system_identifier from pg_control_system()"

    with EmbeddedServer.open(tmp_path / "one") as one, EmbeddedServer.open(tmp_path / "two") as two:
        assert ask(one.dsn(), question) != ask(two.dsn(), question)


def test_settings_are_those_that_were_asked_for():
    with EmbeddedServer.open(settings={"max_connections": "37"}, fsync=False) as server:
        assert ask(server.dsn(), "show max_connections") == "37"
        assert ask(server.dsn(), "show fsync") == "off"


def test_databases_come_from_templates_and_go_with_their_sessions():
    with EmbeddedServer.open(fsync=False) as server:
        server.create_database("first one")
        with psycopg.connect(server.dsn("first one"), autocommit=True) as conn:
            conn.execute("create table note as select 42 as answer")
        server.create_database("second", template="first one")
        connected = psycopg.connect(server.dsn("first one"))

        server.drop_database("first one")
        server.drop_database("never was")

        with pytest.raises(psycopg.OperationalError), connected:
            connected.execute("select 1")
        assert ask(server.dsn("second"), "select answer from note") == "42"


@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
def test_a_halted_server_comes_back_at_the_same_address_with_what_was_committed(how):
    with EmbeddedServer.open() as server:
        with psycopg.connect(server.dsn()) as conn:
            conn.execute("create table note as select 42 as answer")

        server.halt(how)

        with pytest.raises(ServerFailed, match="halted"):
            _ = server.pid
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.tcp_dsn(), connect_timeout=5)

        server.resume()

        assert ask(server.dsn(), "select answer from note") == "42"
        assert ask(server.tcp_dsn(), "select answer from note") == "42"


def test_a_server_that_cannot_start_says_why_in_its_own_words(folder):
    with pytest.raises(
        ServerFailed, match='unrecognized configuration parameter "no_such_setting"'
    ) as caught:
        EmbeddedServer.open(folder, settings={"no_such_setting": "1"}, keep=False)

    assert "\n" not in str(caught.value)
    assert not folder.exists()


def test_a_port_that_was_taken_in_between_is_given_up_for_another(monkeypatch):
    from faultline.embedded import launch

    with EmbeddedServer.open() as first:
        taken = first._card.port
        ports = iter([taken])
        real = launch._free_port
        monkeypatch.setattr(launch, "_free_port", lambda: next(ports, None) or real())

        with EmbeddedServer.open() as second:
            assert second._card.port != taken
            assert ask(second.tcp_dsn(), "select 1") == "1"


def test_a_path_with_spaces_and_more_bytes_than_a_socket_may_have_is_a_folder_like_any_other(tmp_path):
    folder = tmp_path / ("a rather long name " * 8) / ("übermäßig " * 12)

    with EmbeddedServer.open(folder, keep=False) as server:
        assert len(os.fsencode(server.folder)) > 200
        assert ask(server.dsn(), "select 1") == "1"


def test_a_caller_whose_environment_speaks_to_postgres_is_not_heard_by_the_server(monkeypatch):
    for name, value in {
        "PGDATA": "/nowhere",
        "PGPORT": "1",
        "LC_ALL": "xx_YY.broken",
        "TZ": "Mars/Base",
    }.items():
        monkeypatch.setenv(name, value)

    with EmbeddedServer.open(keep=False) as server:
        assert ask(server.dsn(), "show timezone") == "UTC"


def test_closing_twice_is_harmless():
    server = EmbeddedServer.open()

    server.close()
    server.close()

    assert not server.folder.exists()
