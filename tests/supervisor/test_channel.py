"""The worker's end of the link: signals ask to finish, the supervisor's word hurries, its end ends us."""

import asyncio
import os
import signal
import socket
import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from faultline.config import Settings
from faultline.supervisor import channel as module
from faultline.supervisor.channel import SupervisorChannel
from faultline.supervisor.messages import HURRY, ProcessOrder, ProcessReady, read_report, wake


class FakeWorker:
    """Counts how often it is told to stop."""

    id, settings = 7, Settings(dsn="dbname=shop")
    config: Any = SimpleNamespace(grace=timedelta(0), tick=timedelta(seconds=1))

    def __init__(self) -> None:
        self.told = 0

    def stop(self) -> None:
        self.told += 1


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    ours.sendall(ProcessOrder(2, "dbname=shop").line())
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def exits(monkeypatch):
    """The process is not ended; it is noted that it would have been."""
    ended = threading.Event()
    monkeypatch.setattr(module, "LEAVE_SECONDS_MAX", 0.05)
    monkeypatch.setattr(os, "_exit", lambda code: ended.set())
    return ended


async def until(true):
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - another thread makes it true
            await asyncio.sleep(0.01)


def obeying(ends, act):
    """Run `act` beside a worker that obeys the link; what was heard comes back with the worker."""
    worker: Any = FakeWorker()
    heard: list[str | None] = []

    async def run():
        link = SupervisorChannel(ends[1])
        link.obey(worker)
        listening = asyncio.create_task(link.listen(heard.append, lambda: 0.0))
        await act(worker, heard)
        listening.cancel()

    asyncio.run(run())
    ends[0].close()
    for thread in threading.enumerate():
        if thread.name == "faultline-link":
            thread.join(60)  # while the exit it ends with is not a real one
    return worker, heard


def test_the_order_says_which_one_we_are_and_where_the_database_is(ends):
    assert SupervisorChannel(ends[1]).order == ProcessOrder(2, "dbname=shop")


def test_a_supervisor_that_is_gone_before_its_order_is_an_end_of_file():
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs, pytest.raises(EOFError):
        SupervisorChannel(theirs)


def test_being_ready_is_said_with_what_a_watchdog_needs(ends):
    worker: Any = FakeWorker()
    SupervisorChannel(ends[1]).report_ready(worker)

    assert read_report(ends[0].recv(4096)) == ProcessReady(7, "dbname=shop", 1.0, listens=True)


def test_wake_ups_are_passed_on_whole_though_they_come_in_pieces(ends, exits):
    async def act(worker, heard):
        ends[0].sendall(wake("mail") + b"wbill")
        await until(lambda: "mail" in heard)
        ends[0].sendall(b"ing\n")
        await until(lambda: "billing" in heard)

    worker, heard = obeying(ends, act)
    assert heard == ["mail", "billing"]
    assert worker.told == 0


def test_that_the_supervisor_hears_nothing_is_passed_on(ends, exits):
    async def act(worker, heard):
        ends[0].sendall(wake("") + wake(None))
        await until(lambda: heard == ["", None])

    obeying(ends, act)


def test_any_number_of_signals_is_one_wish_to_finish(ends, exits):
    async def act(worker, heard):
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: worker.told)
        await asyncio.sleep(0.05)

    worker, _ = obeying(ends, act)
    assert worker.told == 1


def test_hurry_is_the_second_word_also_where_the_first_was_lost(ends, exits):
    async def act(worker, heard):
        ends[0].sendall(HURRY + b"\n")
        await until(lambda: worker.told == 2)

    obeying(ends, act)


def test_the_end_of_the_supervisor_is_a_wish_to_finish_and_later_the_end(ends, exits):
    """Also while a handler holds the loop up: the thread does not need it."""

    async def act(worker, heard):
        ends[0].close()
        exits.wait(60)  # the loop stands still
        assert exits.is_set()
        await until(lambda: worker.told == 1)

    obeying(ends, act)
