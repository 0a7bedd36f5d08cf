"""The mutants themselves: all of them fit the sources as they are, and the court tells red from green."""

import ast
import shutil
from collections.abc import Iterator
from datetime import date

import pytest

from proof.mutants import court, page
from proof.mutants.mutant import PACKAGE, PROMISES, ROOT, Mutant, Patch, sql
from proof.mutants.table import MUTANTS
from proof.mutants.trial import Verdict, Word

MUTANTS_MIN = 35

FENCED = "tests/promises/test_04_a_write_names_job_token_and_claim.py::test_a_fenced_job_cannot_be_reaped"


def test_every_promise_has_a_mutant():
    assert {mutant.promise for mutant in MUTANTS} == PROMISES
    assert len(MUTANTS) >= MUTANTS_MIN
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_every_mutant_fits_the_sources_as_they_are(tmp_path):
    """A change to a line that a mutant breaks fails here, at once: mend the mutant with the source."""
    for mutant in MUTANTS:
        for name in {patch.file for patch in mutant.patches}:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PACKAGE / name, tmp_path / name)

        mutant.apply(tmp_path)


def test_every_test_that_a_mutant_names_exists():
    for path, name in {tuple(mutant.test.split("::")) for mutant in MUTANTS}:
        tree = ast.parse((ROOT / path).read_text())
        functions = {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in functions, f"{path}::{name}"


def test_a_patch_that_does_not_fit_is_loud(tmp_path):
    (tmp_path / "file.sql").write_text("once twice twice")

    for words, times in (("never", 0), ("twice", 2)):
        with pytest.raises(LookupError, match=f"{times} times, not once"):
            Patch("file.sql", words, "").apply(tmp_path)


def test_the_court_tells_the_killed_from_the_living_and_the_unfit(server):
    """One that breaks the fence, one that breaks nothing, one that does not run, one that does not fit."""
    broken = Mutant("plain", "G3", FENCED, (sql("fence", "for no key update;", ";"),))
    harmless = Mutant("harmless", "G3", FENCED, (sql("fence", "-- running -> running", "-- running"),))
    wrong = Mutant(
        "wrong", "G3", FENCED, (sql("fence", "faultline.active as job", "faultline.nowhere as job"),)
    )
    misfit = Mutant("misfit", "G3", FENCED, (sql("fence", "no such words", ""),))

    verdicts = court.try_all([broken, harmless, wrong, misfit], server.dsn(), 2, lambda verdict: None)

    assert [verdict.word for verdict in verdicts] == ["killed", "survived", "unfit", "unfit"]
    assert verdicts[0].first == FENCED
    table = page.rendered(verdicts, "18.0", date(2026, 1, 2))
    assert table.startswith("4 mutants, 1 killed, 3 alive or unfit; 2026-01-02")
    assert "| G3 | plain | `fence.sql` | a fenced job cannot be reaped (`tests/promises/" in table


def test_a_mutant_that_survived_stands_a_second_trial_alone(server, monkeypatch):
    words: Iterator[Word] = iter(["unfit", "killed"])
    said = []

    def stand(mutant, *anything):
        return Verdict(mutant, next(words), "", "", 0.0)

    monkeypatch.setattr(court, "stand", stand)
    mutant = Mutant("plain", "G3", FENCED, ())

    verdicts = court.try_all([mutant], server.dsn(), 2, lambda verdict: said.append(verdict.word))

    assert [verdict.word for verdict in verdicts] == ["killed"]
    assert said == ["unfit", "killed"]


def test_the_page_holds_the_table_of_all_mutants():
    text = (ROOT / "docs/promises.md").read_text()
    table = text.partition(page.BEGIN)[2].partition(page.END)[0]

    missing = [mutant.name for mutant in MUTANTS if f"| {mutant.name} |" not in table]
    assert not missing, "run `make mutants ARGS=--write`"
