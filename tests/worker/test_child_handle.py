"""The connection of a worker and one child, from both ends: which job a message is for, and who hangs up."""

import asyncio
import os
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from faultline.job import Job
from faultline.lease import Lease
from faultline.worker.attempt import COMMITTED, Attempt, AttemptPhase, StopReason
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.processes.child_handle import ChildHandle
from faultline.worker.processes.child_process import ChildProcess
from faultline.worker.processes.child_protocol import (
    AskTimeLeft,
    AttemptBegan,
    AttemptStart,
    ChildGreeting,
    LeaseRefusal,
    TimeLeft,
    TransactionPhase,
    framed,
    frames_to_child,
)
from faultline.worker.processes.import_path import import_path_of
from tests.worker import children_app as shop
from tests.worker.harness import an_attempt, eventually, rows


class Overheard:
    """In place of a transport: what was said to the child."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self._frames = frames_to_child()

    def write(self, data: bytes) -> None:
        self.said += self._frames.feed(data)

    def is_closing(self) -> bool:
        return False


async def second_turn(lease_table: LeaseTable) -> tuple[ChildHandle, Attempt, Overheard]:
    """A handle whose child runs its second job."""
    handle, line = ChildHandle(None, lease_table), Overheard()
    handle.connection_made(line)  # type: ignore[arg-type]
    handle.begun, handle._attempt = 2, an_attempt(lease_table)
    return handle, handle._attempt, line


@pytest.fixture
def lease_table() -> Any:
    lease_table = LeaseTable.make(1)
    yield lease_table
    lease_table.close()


def test_what_was_said_before_nonsense_is_heard(lease_table):
    """In one piece with it: a job that has begun must not be taken for one that has not."""

    async def tell() -> None:
        handle, _, _ = await second_turn(lease_table)
        handle.process = SimpleNamespace(pid=1, kill=lambda: None)  # type: ignore[assignment]

        handle.data_received(framed(AttemptBegan(2)) + b"\xff" * 100)
        assert handle._began
        assert handle._killed_for == "it spoke nonsense to the worker"

    asyncio.run(tell())


def test_what_is_said_of_an_earlier_job_does_not_touch_this_one(lease_table):
    async def tell() -> None:
        handle, attempt, _ = await second_turn(lease_table)

        handle.data_received(framed(TransactionPhase(1, COMMITTED, True, LeaseRefusal(5, "token_mismatch"))))
        assert (attempt.fenced, attempt.phase, attempt.lost) == (False, AttemptPhase.WORKING, None)

        handle.data_received(framed(TransactionPhase(2, COMMITTED, True, LeaseRefusal(5, "token_mismatch"))))
        assert (attempt.fenced, attempt.phase) == (True, COMMITTED)
        assert (attempt.lost.job_id, attempt.lost.current_token) == (7, 5)

    asyncio.run(tell())


def test_only_the_job_that_runs_may_commit_and_only_while_it_may_run(lease_table):
    async def tell() -> None:
        handle, attempt, line = await second_turn(lease_table)

        handle.data_received(framed(AskTimeLeft(1)))
        assert line.said.pop() == TimeLeft(0.0, StopReason.LEAVING)

        handle.data_received(framed(AskTimeLeft(2)))
        left = line.said.pop()
        assert (left.stopping, 50 < left.seconds <= 60) == (None, True)

        attempt.stopping = StopReason.CANCEL
        handle.data_received(framed(AskTimeLeft(2)))
        assert line.said.pop().stopping == "cancel"

    asyncio.run(tell())


@pytest.fixture
def child(database: str, store: Any) -> Any:
    """A child on its own, greeted."""
    process = ChildProcess()
    greeting = ChildGreeting(
        dsn=database, pooler="none", parent=os.getpid(), path=sys.path, log_json=None, log_level=20,
        places={"spin": import_path_of(shop.spin.spec)},
    )  # fmt: skip
    process.line.sendall(framed(greeting))
    yield process
    process.kill()
    eventually(lambda: process.exit_code is not None)
    process.line.close()


def begin_spinning(process: ChildProcess) -> None:
    job = Job(7, "spin", "default", 1, 5, 0, 3, None, datetime.now(UTC))
    process.line.sendall(framed(AttemptStart.of(1, Lease(7, 3, uuid4(), 60.0, 0.0), job, "{}", None)))


def test_a_busy_child_ends_when_its_line_does(database, child):
    begin_spinning(child)
    eventually(lambda: rows(database, "select from notes"))

    child.line.close()

    assert eventually(lambda: child.exit_code) == -9


def test_an_idle_child_leaves_in_good_order_when_its_line_ends(child):
    assert child.line.recv(65_536)  # it is ready

    child.line.close()

    eventually(lambda: child.exit_code is not None)
    assert child.exit_code == 0


def test_a_child_whose_greeting_names_another_parent_does_nothing(database, store):
    process = ChildProcess()
    greeting = ChildGreeting(
        dsn=database, pooler="none", parent=1, path=sys.path, log_json=None, log_level=20, places={}
    )

    process.line.sendall(framed(greeting))

    eventually(lambda: process.exit_code is not None)
    assert process.line.recv(65_536) == b""
    process.line.close()
