"""The line between a worker and one child, from both ends: who may speak for which job, and who hangs up."""

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
from faultline.worker.board import Board
from faultline.worker.hand import Hand
from faultline.worker.places import place_of
from faultline.worker.spawned import Spawned
from faultline.worker.ward import Ward
from faultline.worker.wire import Ask, Began, Begin, Greeting, Left, Lost, Now, framed, frames_to_child
from tests.worker import children_app as shop
from tests.worker.harness import a_hand, eventually, rows


class Overheard:
    """In place of a transport: what was said to the child."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self._frames = frames_to_child()

    def write(self, data: bytes) -> None:
        self.said += self._frames.feed(data)

    def is_closing(self) -> bool:
        return False


async def second_turn(board: Board) -> tuple[Ward, Hand, Overheard]:
    """A ward whose child runs its second job."""
    ward, line = Ward(None, board), Overheard()
    ward.connection_made(line)  # type: ignore[arg-type]
    ward.begun, ward._hand = 2, a_hand(board)
    return ward, ward._hand, line


@pytest.fixture
def board() -> Any:
    board = Board.make(1)
    yield board
    board.close()


def test_what_was_said_before_nonsense_is_heard(board):
    """In one piece with it: a job that has begun must not be taken for one that has not."""

    async def tell() -> None:
        ward, _, _ = await second_turn(board)
        ward.process = SimpleNamespace(pid=1, kill=lambda: None)  # type: ignore[assignment]

        ward.data_received(framed(Began(2)) + b"\xff" * 100)
        assert ward._began
        assert ward._killed_for == "it spoke nonsense to the worker"

    asyncio.run(tell())


def test_what_is_said_of_an_earlier_job_does_not_touch_this_one(board):
    async def tell() -> None:
        ward, hand, _ = await second_turn(board)

        ward.data_received(framed(Now(1, True, True, True, Lost(5, "token_mismatch"))))
        assert (hand.fenced, hand.committing, hand.settled, hand.lost) == (False, False, False, None)

        ward.data_received(framed(Now(2, True, True, True, Lost(5, "token_mismatch"))))
        assert (hand.fenced, hand.committing, hand.settled) == (True, True, True)
        assert (hand.lost.job_id, hand.lost.current_token) == (7, 5)

    asyncio.run(tell())


def test_only_the_job_that_runs_may_commit_and_only_while_it_may_run(board):
    async def tell() -> None:
        ward, hand, line = await second_turn(board)

        ward.data_received(framed(Ask(1)))
        assert line.said.pop() == Left(0.0, "leaving")

        ward.data_received(framed(Ask(2)))
        left = line.said.pop()
        assert (left.stopping, 50 < left.seconds <= 60) == (None, True)

        hand.stopping = "cancel"
        ward.data_received(framed(Ask(2)))
        assert line.said.pop().stopping == "cancel"

    asyncio.run(tell())


@pytest.fixture
def child(database: str, store: Any) -> Any:
    """A child on its own, greeted."""
    process = Spawned()
    greeting = Greeting(
        dsn=database, pooler="none", parent=os.getpid(), path=sys.path, log_json=None, log_level=20,
        places={"spin": place_of(shop.spin.spec)},
    )  # fmt: skip
    process.line.sendall(framed(greeting))
    yield process
    process.kill()
    eventually(lambda: process.exit_code is not None)
    process.line.close()


def begin_spinning(process: Spawned) -> None:
    job = Job(7, "spin", "default", 1, 5, 0, 3, None, datetime.now(UTC))
    process.line.sendall(framed(Begin.of(1, Lease(7, 3, uuid4(), 60.0, 0.0), job, "{}", None)))


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
    process = Spawned()
    greeting = Greeting(
        dsn=database, pooler="none", parent=1, path=sys.path, log_json=None, log_level=20, places={}
    )

    process.line.sendall(framed(greeting))

    eventually(lambda: process.exit_code is not None)
    assert process.line.recv(65_536) == b""
    process.line.close()
