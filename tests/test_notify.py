"""What systemd and a container's probes are told: ready, alive, stopping; nothing without a listener."""

import asyncio
import contextlib
import os
import time

import pytest

from faultline.runtime.notify import SIGN_EVERY, Notifier
from tests.support_manager import PATIENCE, Manager


async def live(notifier, ready, stopping, signs_in=None):
    """Follow a life for a moment, or until a manager has three signs of it, and end it as a process does."""
    told = asyncio.create_task(notifier.follow(ready, stopping, lambda: "3 jobs in hand"))
    if signs_in is None:
        await asyncio.sleep(0.15)
    else:
        async with asyncio.timeout(PATIENCE):
            while signs_in.count("WATCHDOG") < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    told.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await told


def event(is_set):
    event = asyncio.Event()
    if is_set:
        event.set()
    return event


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """A service manager at an address of either kind."""
    with Manager.at(tmp_path if request.param == "path" else None) as manager:
        yield manager


def test_ready_comes_first_then_signs_of_life_with_a_status(manager):
    notifier = Notifier.take({"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "40000"})

    asyncio.run(live(notifier, event(True), event(False), manager))

    first, *rest = manager.hear()
    assert first == (os.getpid(), {"READY": "1", "STATUS": "3 jobs in hand"})
    assert len(rest) > 2
    assert {word.said["WATCHDOG"] for word in rest} == {"1"}


def test_before_it_is_ready_nothing_is_said(manager):
    notifier = Notifier.take({"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "40000"})

    asyncio.run(live(notifier, event(False), event(False)))

    assert manager.hear() == []


def test_stopping_is_said_once_and_signs_go_on_while_it_drains(manager):
    notifier = Notifier.take({"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "40000"})

    asyncio.run(live(notifier, event(True), event(True), manager))

    kinds = [next(iter(word.said)) for word in manager.hear()]
    assert kinds[:3] == ["READY", "STOPPING", "WATCHDOG"]
    assert kinds.count("STOPPING") == 1
    assert kinds.count("WATCHDOG") > 2


def test_a_loop_that_is_held_up_gives_no_sign(manager):
    """That is what the watchdog is for: a thread that signs for a stuck loop would hide it."""
    notifier = Notifier.take({"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "20000"})

    async def hold_up():
        told = asyncio.create_task(notifier.follow(event(True), event(False), lambda: ""))
        await asyncio.sleep(0.1)
        before = manager.count("WATCHDOG")
        time.sleep(0.2)  # noqa: ASYNC251 - that is the point
        after = manager.count("WATCHDOG")
        told.cancel()
        return before, after

    before, after = asyncio.run(hold_up())
    assert before > 0
    assert after == before


def test_the_environment_is_taken_so_that_what_handlers_start_does_not_speak_for_us():
    environment = {
        "NOTIFY_SOCKET": "@somewhere", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": str(os.getpid()),
        "FAULTLINE_ALIVE_FILE": "/tmp/alive", "HOME": "/",
    }  # fmt: skip

    notifier = Notifier.take(environment)

    assert environment == {"HOME": "/"}
    assert (notifier.address, notifier.sign_every) == ("\0somewhere", 0.5)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "3600000000"},
    ],
)
def test_without_a_watchdog_of_ours_signs_come_at_their_own_pace(environment):
    assert Notifier.take({"NOTIFY_SOCKET": "@x", **environment}).sign_every == SIGN_EVERY


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "relative/path"])
def test_an_unsupported_form_of_address_is_ignored(address):
    notifier = Notifier.take({"NOTIFY_SOCKET": address})

    assert not notifier.wanted
    asyncio.run(asyncio.wait_for(notifier.follow(event(False), event(False), str), 5))


def test_a_manager_that_has_gone_costs_nothing(tmp_path):
    with Manager.at(tmp_path) as manager:
        gone = Notifier.take({"NOTIFY_SOCKET": manager.address})

    gone.tell("READY=1")
    Notifier.take({"NOTIFY_SOCKET": str(tmp_path / "never-was")}).tell("READY=1")


def test_the_file_is_touched_while_it_lives_and_goes_with_it(tmp_path):
    file = tmp_path / "alive"
    notifier = Notifier(file=file, sign_every=0.02)

    async def look():
        told = asyncio.create_task(notifier.follow(event(True), event(False), str))
        await asyncio.sleep(0.1)
        first = file.stat().st_mtime_ns
        await asyncio.sleep(0.2)
        assert file.stat().st_mtime_ns > first
        told.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await told

    asyncio.run(look())

    assert not file.exists()


def test_a_file_that_cannot_be_written_stops_nothing_and_is_warned_of_once(tmp_path, caplog):
    file = tmp_path / "no" / "such" / "folder"
    notifier = Notifier(file=file, sign_every=0.02)

    asyncio.run(live(notifier, event(True), event(True)))

    (warning,) = caplog.records
    assert warning.levelname == "WARNING"
    said = warning.getMessage()
    assert f"FAULTLINE_ALIVE_FILE cannot be written: {file} (No such file or directory)" in said
    assert "name a file in a folder that exists" in said
