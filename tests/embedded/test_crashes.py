"""Whatever was killed, the folder can be opened again, and what was committed is there."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import psycopg
import pytest

from faultline.embedded import EmbeddedServer
from faultline.embedded.os_account import account_for
from faultline.embedded.server_folder import ServerFolder
from tests.embedded.others import answers, is_gone, supervisor_of


def write_a_note(dsn):
    with psycopg.connect(dsn) as conn:
        conn.execute("create table note as select 42 as answer")


def read_the_note(dsn):
    with psycopg.connect(dsn) as conn:
        return conn.execute("select answer from note").fetchone()


def test_a_server_killed_with_its_supervisor_and_its_holder_starts_again(folder, hold):
    other = hold()
    told = other.told()
    write_a_note(told["dsn"])

    os.kill(supervisor_of(told["pid"]), signal.SIGKILL)
    os.kill(told["pid"], signal.SIGKILL)
    other.kill()

    assert (folder / "pg" / "postmaster.pid").exists()
    with EmbeddedServer.open(folder, keep=False) as server:
        assert read_the_note(server.dsn()) == (42,)


def test_a_server_that_ends_by_itself_is_seen_as_gone_and_can_be_started_again(folder):
    with EmbeddedServer.open(folder, keep=False) as server:
        write_a_note(server.dsn())
        os.kill(server.pid, signal.SIGKILL)
        assert is_gone(folder)

        with EmbeddedServer.open(folder, keep=False) as again:
            assert read_the_note(again.dsn()) == (42,)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed")
def test_a_server_does_not_outlive_its_supervisor(folder):
    with EmbeddedServer.open(folder, keep=False) as server:
        os.kill(supervisor_of(server.pid), signal.SIGKILL)

        assert is_gone(folder)


def test_a_stray_server_is_ended_before_the_next_begins(folder, monkeypatch):
    """Such as one whose supervisor was killed on a system that tells children nothing of it."""
    monkeypatch.setattr("faultline.embedded.launch.QUIET_SECONDS_MAX", 0.5)
    server = EmbeddedServer.open(folder, keep=False)
    write_a_note(server.dsn())
    stray = server.pid
    os.kill(stray, signal.SIGSTOP)
    os.kill(supervisor_of(stray), signal.SIGKILL)

    with EmbeddedServer.open(folder, keep=False) as again:
        assert again.pid != stray
        assert read_the_note(again.dsn()) == (42,)

    server.close()


def test_a_process_id_that_another_process_has_now_is_recognised(folder):
    """PostgreSQL itself would refuse to start: it finds a process with the id its pid file names."""
    with EmbeddedServer.open(folder):
        pass
    stranger = subprocess.Popen(["sleep", "60"], cwd="/", **account_for(folder / "pg").spawn)
    pid_file = folder / "pg" / "postmaster.pid"
    pid_file.write_text(f"{stranger.pid}\n{folder / 'pg'}\n{int(time.time())}\n1\n/tmp\n\n  1 1\nready\n")

    try:
        with EmbeddedServer.open(folder) as server:
            assert server.pid != stranger.pid
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_card_that_names_another_folders_server_is_not_believed(tmp_path):
    with EmbeddedServer.open() as other:
        theirs = replace(other._card, nonce="not theirs")
        folder = tmp_path / "server"
        ServerFolder.at(folder)
        card = {**asdict(theirs), "socket_folder": str(tmp_path / "sockets")}
        (tmp_path / "sockets").mkdir()
        (tmp_path / "sockets" / "control").symlink_to(other._card.control)
        (folder / "server.json").write_text(json.dumps(card))

        with EmbeddedServer.open(folder, keep=False) as server:
            assert server.pid != other.pid


def test_a_torn_card_is_no_card(folder):
    ServerFolder.at(folder)
    (folder / "server.json").write_text('{"nonce": "ab')

    with EmbeddedServer.open(folder, keep=False) as server:
        assert answers(server.dsn())


def test_a_half_made_data_folder_is_made_again(folder):
    draft = ServerFolder.at(folder).draft
    draft.mkdir()
    (draft / "PG_VERSION").write_text("18\n")

    with EmbeddedServer.open(folder, keep=False) as server:
        assert answers(server.dsn())

    assert not folder.exists()


def test_a_folder_deleted_under_a_running_server_can_be_opened_again(folder):
    first = EmbeddedServer.open(folder, keep=False)
    shutil.rmtree(folder, ignore_errors=True)

    with EmbeddedServer.open(folder, keep=False) as second:
        first.close()

        second.halt()
        second.resume()
        assert answers(second.dsn())
        assert answers(second.tcp_dsn())
