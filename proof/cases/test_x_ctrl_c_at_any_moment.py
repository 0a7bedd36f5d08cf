"""x: a Ctrl-C at many moments of every command; the short form is in tests/cli/test_interrupts.py."""

import os
import random

import pytest

from tests.cli.conftest import shop  # noqa: F401
from tests.cli.interrupting import COMMANDS, interrupt

MOMENTS = int(os.environ.get("FAULTLINE_MOMENTS", "20"))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_x_a_ctrl_c_is_never_lost(command, database, shop):  # noqa: F811
    """It may come before the command can be interrupted at all, in its middle, or while it ends."""
    moments = [random.uniform(0.05, command.seconds * 2) for _ in range(MOMENTS)]

    wrong = [told for after in moments if (told := interrupt(command, after, database, shop))]

    assert wrong == []
