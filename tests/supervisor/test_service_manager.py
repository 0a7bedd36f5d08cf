"""Workers under a service manager: ready when they claim, alive while their loop turns, then stopping."""

import signal
import time

import pytest
from click.testing import CliRunner

from faultline.cli.root import root
from tests.supervisor.conftest import begun
from tests.support import enqueue, state_of
from tests.support_manager import Manager
from tests.worker.harness import eventually, rows


@pytest.fixture
def manager(tmp_path):
    with Manager.at(tmp_path) as manager:
        yield manager


@pytest.mark.parametrize("words", [(), ("--processes", "2")], ids=["alone", "group"])
def test_the_first_process_tells_of_a_whole_life_and_the_others_nothing(
    database, store, group, manager, tmp_path, words
):
    file = tmp_path / "alive"
    worker = group(
        *words, NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="200000", FAULTLINE_ALIVE_FILE=str(file)
    )
    manager.wait_for("READY")
    job = enqueue(store, task="nap", args='{"seconds": 0.5}')
    manager.wait_for("WATCHDOG", more_than=2)
    assert file.exists()
    eventually(lambda: begun(database))

    worker.signal(signal.SIGTERM)
    manager.wait_for("STOPPING")

    assert worker.wait() == 0, worker.said()
    assert state_of(store, job) == "succeeded"
    assert {word.pid for word in manager.hear()} == {worker.process.pid}
    assert manager.count("READY") == manager.count("STOPPING") == 1
    assert not file.exists()


WAIT_HERE = """
create function wait_here() returns trigger language plpgsql as
  $$ begin perform pg_advisory_xact_lock_shared(77); return new; end $$;
create trigger wait_here before update on faultline.active for each row execute function wait_here();
"""


def test_a_worker_is_not_ready_before_its_first_claim_is_answered(database, store, group, manager, db):
    db.execute(WAIT_HERE)
    db.execute("select pg_advisory_lock(77)")
    enqueue(store, task="nap", args='{"seconds": 0}')

    worker = group(NOTIFY_SOCKET=manager.address)
    eventually(lambda: rows(database, "select from pg_locks where locktype = 'advisory' and not granted"), 60)
    assert manager.hear() == []

    db.execute("select pg_advisory_unlock(77)")
    assert manager.wait_for("READY").pid == worker.process.pid


def test_a_worker_whose_loop_is_held_up_gives_no_sign_until_it_turns_again(database, store, group, manager):
    group(NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="200000")
    manager.wait_for("WATCHDOG")

    enqueue(store, task="hold_the_loop", args='{"seconds": 6}')
    eventually(lambda: begun(database))
    held_at = manager.count("WATCHDOG")
    time.sleep(0.6)

    assert manager.count("WATCHDOG") == held_at
    manager.wait_for("WATCHDOG", more_than=held_at + 2)


def test_what_a_file_says_is_what_health_answers(group, tmp_path, monkeypatch):
    file = tmp_path / "alive"
    monkeypatch.setenv("FAULTLINE_ALIVE_FILE", str(file))

    def healthy():
        return CliRunner().invoke(root, ["health", "--alive"]).exit_code == 0

    assert not healthy()
    worker = group(FAULTLINE_ALIVE_FILE=str(file))
    eventually(healthy, 60)
    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    assert not healthy()
