"""Every example in a docstring runs and says what it says."""

import doctest
import importlib
from pathlib import Path

import pytest

import faultline

SOURCES = Path(faultline.__file__).parent
MODULES = sorted(
    ".".join(("faultline", *source.relative_to(SOURCES).with_suffix("").parts)).removesuffix(".__init__")
    for source in SOURCES.rglob("*.py")
    if ">>> " in source.read_text()
)


ON_A_DATABASE = ("faultline.audit.examine",)


@pytest.mark.parametrize("name", sorted({*MODULES} - {*ON_A_DATABASE}))
def test_examples_in_docstrings_run(name):
    found = doctest.testmod(importlib.import_module(name))

    assert found.failed == 0


@pytest.mark.parametrize("name", ON_A_DATABASE)
def test_examples_that_need_a_database_run(db, name):
    found = doctest.testmod(importlib.import_module(name), extraglobs={"conn": db})

    assert (found.failed, found.attempted > 0) == (0, True)
