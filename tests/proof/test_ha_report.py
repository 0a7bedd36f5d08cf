"""The report of `make ha`: verdicts and why, in words and in Markdown; and its command line."""

import json
from pathlib import Path

import pytest

from proof.ha import __main__ as lab
from proof.ha import programs, report
from proof.ha.judge import Expected, judge
from proof.ha.play import Played
from proof.ha.scenarios import ALL
from tests.proof.test_ha_judge import WRONG, sound


def played(folder: Path, name: str = "kill-sync", **changed) -> Played:
    facts = sound().__class__(**{**sound().__dict__, **changed})
    return Played(ALL[name], folder, judge(facts, Expected()), facts)


def test_only_a_run_whose_every_scenario_is_kept_is_kept(tmp_path: Path):
    good, bad = played(tmp_path), played(tmp_path, **WRONG["lost"])
    void = played(tmp_path, promotions=[])

    assert report.verdict([good, good], 2) == "kept"
    assert report.verdict([good], 2) == "void"
    assert report.verdict([good, void], 2) == "void"
    assert report.verdict([good, bad, void], 3) == "broken"
    assert (lab.EXITS["kept"], lab.EXITS["broken"], lab.EXITS["void"]) == (0, 1, 3)


def test_the_report_names_what_is_broken(tmp_path: Path):
    report.write([played(tmp_path, **WRONG["failed"])], tmp_path)

    page = (tmp_path / "report.md").read_text()
    document = json.loads((tmp_path / "report.json").read_text())

    assert "| kill-sync | **BROKEN** |" in page
    assert "- kill-sync: failed: 1" in page
    assert (document["verdict"], document["why"]) == ("broken", ["failed: 1"])


def test_the_list_has_every_scenario_and_needs_no_root(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["ha", "--list"])

    assert lab.main() == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == set(ALL)


def test_a_scenario_that_is_none_is_named(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["ha", "frezze-sync"])

    with pytest.raises(SystemExit, match="2"):
        lab.main()
    assert "no such scenario: frezze-sync" in capsys.readouterr().err


def test_without_root_nothing_is_done(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["ha"])
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    assert lab.main() == lab.CANNOT
    assert "needs root" in capsys.readouterr().err


def test_what_builds_the_two_source_packages_is_pinned_by_the_same_lock():
    pinned = programs._pinned(programs.BUILDER)

    assert pinned.startswith("setuptools==")
    assert "--hash=sha256:" in pinned
    assert "via" not in pinned
