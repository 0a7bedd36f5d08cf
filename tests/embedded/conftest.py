"""Fixtures for the embedded server's own tests: a folder for one, and other processes that hold it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.embedded.others import OtherProcess


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "server"


@pytest.fixture
def hold(folder: Path) -> Iterator[Callable[[], OtherProcess]]:
    """Start a process that holds the server of `folder`; it is killed with the test."""
    with ExitStack() as stack:

        def begin() -> OtherProcess:
            other = OtherProcess(folder)
            stack.callback(other.kill)
            return other

        yield begin
