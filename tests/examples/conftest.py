"""Starts programs, and sees to it that none is left."""

import pytest

from tests.examples.programs import Program


@pytest.fixture
def start(database, tmp_path):
    """Start a program of the examples: `start("a", "-m", "faultline", ...)`."""
    started = []

    def start(name: str, *command: str, **environment: str) -> Program:
        program = Program(database, tmp_path / f"{name}.log", *command, **environment)
        started.append(program)
        return program

    yield start
    for program in started:
        program.end()
