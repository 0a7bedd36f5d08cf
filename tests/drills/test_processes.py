"""Worker processes can be frozen, continued and killed, and none of them is ever left behind."""

import os
import signal
import subprocess
import sys

import pytest

from faultline.lab.drills.processes.worker_processes import DrillProcess, ProcessKeeper
from faultline.lab.drills.view.trace import DrillStuck, Trace
from tests.drills.processes import is_alive, still_there


@pytest.fixture
def keeper():
    keeper = ProcessKeeper()
    yield keeper
    keeper.close()


def order(place):
    return {"dsn": place.dsn, "queue": place.queue, "lease_seconds": 1}


def test_freezing_and_ending_are_told_by_the_kernel(scene):
    worker = scene.worker("A", gate="never")
    worker.send(signal.SIGSTOP)
    worker.wait_stopped(10)
    worker.send(signal.SIGCONT)
    worker.send(signal.SIGKILL)

    assert worker.wait_exit(10) == -signal.SIGKILL
    assert worker.wait_gone(10)


def test_a_frozen_worker_can_be_ended(scene):
    worker = scene.worker("A")
    worker.send(signal.SIGSTOP)
    worker.wait_stopped(10)

    worker.end()

    assert not is_alive(worker.pid)
    assert worker.process.returncode == -signal.SIGKILL


def test_waiting_for_a_worker_to_freeze_ends_when_it_has_ended(scene):
    worker = scene.worker("A")
    worker.send(signal.SIGKILL)

    with pytest.raises(DrillStuck, match="ended with code -9 before it was stopped"):
        worker.wait_stopped(10)


def test_a_worker_ends_when_its_drill_closes_its_standard_input(place, keeper):
    worker = DrillProcess("A", order(place), Trace(), keeper)
    worker.process.stdin.close()

    assert worker.wait_gone(20)


def test_a_modules_name_in_the_current_directory_does_not_win(scene, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    (tmp_path / "faultline").mkdir()
    monkeypatch.chdir(tmp_path)
    scene.enqueue()

    worker = scene.worker("A")

    scene.trace.wait_for_event("A", "execution_finished", 20)
    scene.stop(worker)


KILLED_DRILL = """
import signal, sys
from faultline.lab.drills.processes.worker_processes import ProcessKeeper, DrillProcess
from faultline.lab.drills.view.trace import Trace
worker = DrillProcess("A", {"dsn": "", "queue": "q", "lease_seconds": 1}, Trace(), ProcessKeeper())
worker.send(signal.SIGSTOP)
worker.wait_stopped()
print(worker.pid, flush=True)
signal.pause()
"""


def test_a_frozen_worker_does_not_outlive_a_drill_that_is_killed():
    drill = subprocess.Popen([sys.executable, "-c", KILLED_DRILL], stdout=subprocess.PIPE)
    worker = int(drill.stdout.readline())
    assert is_alive(worker)

    drill.kill()
    drill.communicate()

    assert still_there({worker}) == set()


def test_the_keeper_kills_nothing_it_was_told_to_drop(keeper):
    bystander = subprocess.Popen(["sleep", "60"], process_group=0)
    keeper.say("hold", bystander.pid)
    keeper.say("drop", bystander.pid)
    keeper.close()

    assert bystander.poll() is None
    os.kill(bystander.pid, signal.SIGKILL)
    bystander.wait()
