"""Fail points stop, kill or break this very process, when a drill says so."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faultline import failpoints
from faultline.errors import ConfigError


@pytest.fixture(autouse=True)
def _disarmed():
    yield
    failpoints.arm("")


def start(armed, then):
    script = f"from faultline import failpoints as f; f.arm_from_environment(); {then}; print('went on')"
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "FAULTLINE_FAILPOINTS": armed},
        stdout=subprocess.PIPE,
    )


def test_an_unarmed_fail_point_does_nothing():
    for name in failpoints.NAMES:
        failpoints.failpoint(name)


def test_a_fail_point_fires_once():
    failpoints.arm("started=raise")

    with pytest.raises(RuntimeError, match="fail point started"):
        failpoints.failpoint("started")

    failpoints.failpoint("started")


def test_a_fail_point_with_a_star_fires_every_time():
    failpoints.arm("started=raise*")

    for _ in range(3):
        with pytest.raises(RuntimeError):
            failpoints.failpoint("started")


def test_only_the_armed_fail_point_fires():
    failpoints.arm("started=raise, acked=raise")

    failpoints.failpoint("claimed")
    with pytest.raises(RuntimeError):
        failpoints.failpoint("acked")


@pytest.mark.parametrize("text", ["comit.sending=kill", "claimed", "claimed=explode", "=kill"])
def test_what_is_not_a_fail_point_is_refused_at_the_start(text):
    with pytest.raises(ConfigError, match="FAULTLINE_FAILPOINTS"):
        failpoints.arm(text)


def test_kill_ends_the_process_on_the_spot():
    process = start("claimed=kill", "f.failpoint('claimed')")

    said, _ = process.communicate(timeout=60)

    assert (process.returncode, said) == (-signal.SIGKILL, b"")


def test_exit_ends_the_process_with_a_code_of_its_own():
    process = start("claimed=exit", "f.failpoint('claimed')")

    said, _ = process.communicate(timeout=60)

    assert (process.returncode, said) == (failpoints.EXIT_CODE, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the state of a process from /proc")
def test_freeze_stops_the_companions_and_the_process_until_it_is_continued():
    companion = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process = start(
        "commit.sending=freeze", f"f.companions.append({companion.pid}); f.failpoint('commit.sending')"
    )
    try:
        wait_until_stopped(process.pid)
        wait_until_stopped(companion.pid)

        process.send_signal(signal.SIGCONT)
        said, _ = process.communicate(timeout=60)

        assert said == b"went on\n"
    finally:
        companion.kill()
        companion.wait()


def wait_until_stopped(pid):
    give_up_at = time.monotonic() + 20
    while "\nState:\tT" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < give_up_at, f"process {pid} was not stopped"
        time.sleep(0.01)


def test_with_a_folder_a_fail_point_fires_in_the_first_process_that_comes_and_tells_which(tmp_path):
    def run():
        script = "from faultline import failpoints as f; f.arm_from_environment(); f.failpoint('started')"
        environment = {
            **os.environ, "FAULTLINE_FAILPOINTS": "started=exit*", "FAULTLINE_FAILPOINTS_ONCE": str(tmp_path)
        }  # fmt: skip
        process = subprocess.Popen([sys.executable, "-c", script], env=environment)
        return process.wait(30), process.pid

    first, second = run(), run()

    assert (first[0], second[0]) == (failpoints.EXIT_CODE, 0)
    assert [trace.name for trace in tmp_path.iterdir()] == ["started"]
    assert (tmp_path / "started").read_text().startswith(f"{first[1]}\n")


@pytest.mark.parametrize(("point", "strikes_both"), [("commit.sending", True), ("child.begun", False)])
def test_what_strikes_a_child_strikes_its_worker_too_but_for_the_childs_own_points(point, strikes_both):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as worker:
        child = start(f"{point}=kill", f"f.worker = {worker.pid}; f.failpoint('{point}')")

        assert child.wait(30) == -signal.SIGKILL
        if not strikes_both:
            assert worker.poll() is None
            worker.terminate()
        assert worker.wait(30) == (-signal.SIGKILL if strikes_both else -signal.SIGTERM)
    child.stdout.close()
