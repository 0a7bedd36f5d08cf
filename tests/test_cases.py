"""docs/cases.md: every case of the catalogue is there or told as not covered, and every name on it exists."""

import ast
import re
from pathlib import Path

from faultline.lab.drills.registry import DRILLS
from proof.mutants.table import MUTANTS

ROOT = Path(__file__).parents[1]
SUITES = ("explorer", "nemesis", "fail points")

CATALOGUE = {
    "P": (1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13),
    "D": (1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18),
    "N": (2, 4, 5, 6, 7, 8, 9),
    "T": (2, 3, 4, 5, 6, 7),
    "C": (1, 3, 4, 5, 6, 8, 9, 10, 11),
    "I": (2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
    "S": tuple(range(1, 15)),
    "M": (1, 2, 3, 4, 5),
}
"""The faults and inputs that Faultline was asked to withstand, by their numbers."""

OWN_MIN = 15


def rows() -> dict[str, str]:
    page = (ROOT / "docs/cases.md").read_text()
    return dict(re.findall(r"^\| ([A-Z]\d+) \|[^|]*\| (.*) \|$", page, re.MULTILINE))


def not_covered() -> set[str]:
    page = (ROOT / "docs/promises.md").read_text().partition("## Cases that are not covered")[2]
    return set(re.findall(r"\*\*([A-Z]\d+)\*\*", page))


def test_every_case_stands_on_the_page_once():
    page = (ROOT / "docs/cases.md").read_text()
    cases = re.findall(r"^\| ([A-Z]\d+) \|", page, re.MULTILINE)

    assert sorted(cases) == sorted(set(cases))


def test_every_case_of_the_catalogue_is_covered_or_told_as_not_covered():
    asked = {f"{letter}{number}" for letter, numbers in CATALOGUE.items() for number in numbers}
    covered = set(rows())

    assert asked - covered - not_covered() == set()
    assert len(covered - asked) >= OWN_MIN


def test_every_case_names_a_test_a_drill_or_a_suite():
    for case, where in rows().items():
        assert "::" in where or "drill `" in where or any(suite in where for suite in SUITES), case


def test_every_test_that_the_page_names_exists():
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (ROOT / "docs/cases.md").read_text())

    assert len(named) > 100
    for path in {path for path, _ in named}:
        tree = ast.parse((ROOT / path).read_text())
        there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert {name for of, name in named if of == path} <= there, path


def test_every_case_of_our_own_has_a_mutant():
    tried = {mutant.test for mutant in MUTANTS}

    for case, where in rows().items():
        if case.startswith("X"):
            named = {f"{path}::{name}" for path, name in re.findall(r"`([\w/]+\.py)::(\w+)`", where)}
            assert named & tried, case


def test_every_drill_that_the_page_names_exists():
    named = set(re.findall(r"drill `([\w-]+)`", (ROOT / "docs/cases.md").read_text()))

    assert named
    assert named <= set(DRILLS)
