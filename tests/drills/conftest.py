"""What tests of drills need: a place to play, and something to print on."""

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from rich.console import Console

from faultline.lab.drills.registry import DRILLS
from faultline.lab.drills.stage.drill_database import DrillDatabase, stage
from faultline.lab.drills.stage.scene import Scene
from faultline.lab.drills.view.trace import Trace
from tests.servers import Server


@pytest.fixture
def console() -> Console:
    """Eighty columns of plain text; `console.file.getvalue()` is what was printed."""
    return Console(file=io.StringIO(), width=80)


@pytest.fixture
def place(server: Server) -> Iterator[DrillDatabase]:
    """A stage of this test's own."""
    with stage(server.dsn()) as prepared:
        yield prepared


@pytest.fixture
def scene(place: DrillDatabase) -> Iterator[Scene]:
    with Scene(place, Trace()) as prepared:
        yield prepared


@pytest.fixture(scope="module")
def aftermath(server: Server) -> Iterator[Callable[[str], Scene]]:
    """Plays a drill once for all tests of a file, and gives the scene it left."""
    with ExitStack() as stack:
        played: dict[str, Scene] = {}

        def play(name: str) -> Scene:
            if name not in played:
                played[name] = stack.enter_context(Scene(stack.enter_context(stage(server.dsn())), Trace()))
                DRILLS[name].play(played[name])
            return played[name]

        yield play


@pytest.fixture
def db_names(server: Server) -> Any:
    """Asks which databases of drills there are."""

    def ask() -> set[str]:
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            names = conn.execute(
                "select datname from pg_database where starts_with(datname, 'faultline_drill_')"
            )
            return {name for (name,) in names}

    return ask
