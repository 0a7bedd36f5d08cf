"""The public names are there, typed, and loaded only at their first use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import faultline

SOURCE = Path(faultline.__file__).read_text()


def test_what_a_type_checker_is_told_is_what_is_found():
    told = {
        node.module: {alias.name for alias in node.names}
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("faultline.")
    }

    assert told == {home: set(names.split()) for home, names in faultline._HOMES.items()}
    assert {*set().union(*told.values()), "__version__"} == set(faultline.__all__)


@pytest.mark.parametrize("name", faultline.__all__)
def test_every_public_name_is_there(name):
    assert getattr(faultline, name) is not None
    assert name in dir(faultline)


def test_a_name_that_is_not_there_is_missed_as_anywhere_else():
    wrong = "Faultlime"

    with pytest.raises(AttributeError, match="module 'faultline' has no attribute 'Faultlime'"):
        getattr(faultline, wrong)


@pytest.mark.parametrize("module", ["faultline", "faultline.errors", "faultline.cli.root"])
def test_what_speaks_to_no_database_loads_no_driver(module):
    asked = f"import sys, {module}; sys.exit('psycopg' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


def test_the_modules_behind_the_names_can_be_reached_through_the_package():
    asked = "import faultline; faultline.errors.LeaseLost; from faultline import *; Faultline"

    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
