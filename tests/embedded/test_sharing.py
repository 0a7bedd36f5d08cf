"""Several processes and one server: it runs while a process holds it, and not a moment longer."""

import multiprocessing
import os
import signal

import pytest

from faultline.embedded import EmbeddedServer
from tests.embedded.others import answers, is_gone, supervisor_of


def test_a_second_process_joins_the_server_that_runs(folder, hold):
    with EmbeddedServer.open(folder, keep=False) as server:
        other = hold().told()

        assert other == {"pid": server.pid, "dsn": server.dsn()}


def test_processes_that_start_at_the_same_moment_share_one_server(folder, hold):
    others = [hold() for _ in range(4)]

    assert len({other.told()["pid"] for other in others}) == 1


def test_the_server_outlives_the_process_that_started_it_and_ends_with_the_last(folder, hold):
    first = hold()
    pid = first.told()["pid"]
    second = hold()
    second.told()

    first.leave()

    with EmbeddedServer.open(folder, keep=False) as server:
        assert server.pid == pid
    second.leave()
    assert is_gone(folder)


def test_a_killed_process_holds_nothing(folder, hold):
    other = hold()
    other.told()

    other.kill()

    assert is_gone(folder)


def test_one_of_two_killed_leaves_the_server_to_the_other(folder, hold):
    starter = hold()
    starter.told()
    with EmbeddedServer.open(folder, keep=False) as server:
        starter.kill()

        assert answers(server.dsn())

    assert is_gone(folder)


def test_all_killed_at_once_leave_no_server(folder, hold):
    others = [hold() for _ in range(3)]
    for other in others:
        other.told()

    for other in others:
        other.process.kill()

    assert is_gone(folder)


def test_a_process_killed_while_it_starts_the_server_leaves_none(folder, hold):
    starter = hold()
    while not (folder / "alive").exists():
        assert starter.process.poll() is None

    starter.kill()

    assert is_gone(folder)
    with EmbeddedServer.open(folder, keep=False) as server:
        assert answers(server.dsn())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_hold_what_its_parent_opened(folder):
    server = EmbeddedServer.open(folder, keep=False)
    child = multiprocessing.get_context("fork").Process(target=signal.pause)
    child.start()

    server._hold.drop()  # without a word, as a kill would

    try:
        assert child.is_alive()
        assert is_gone(folder)
    finally:
        child.kill()
        child.join()


def test_a_ctrl_c_in_the_terminal_does_not_reach_the_server(folder):
    """The terminal sends its signals to a process group, and the server is in none of ours."""
    with EmbeddedServer.open(folder, keep=False) as server:
        assert os.getsid(server.pid) != os.getsid(0)
        assert os.getpgid(server.pid) != os.getpgid(0)
        assert os.getsid(supervisor_of(server.pid)) != os.getsid(0)


def test_two_servers_run_side_by_side(tmp_path):
    with EmbeddedServer.open() as one, EmbeddedServer.open() as two:
        assert one.pid != two.pid
        assert one.dsn() != two.dsn()


def test_a_holder_that_comes_while_the_last_one_leaves_gets_a_server_all_the_same(folder):
    """Many times over, for the moment between the two is short."""
    for _ in range(5):
        first = EmbeddedServer.open(folder, keep=False, fsync=False)
        first._hold.drop()

        with EmbeddedServer.open(folder, keep=False, fsync=False) as second:
            assert answers(second.dsn())
