"""The changelog has the form of Keep a Changelog, and says nothing twice."""

import re

from scripts.docs.blocks import ROOT

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
TEXT = (ROOT / "CHANGELOG.md").read_text()
VERSIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", TEXT, re.MULTILINE))


def test_versions_are_named_and_dated_and_the_next_one_comes_first():
    first, *others = VERSIONS

    assert first == "[Unreleased]"
    assert [name for name in others if not re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", name)] == []


def test_changes_stand_under_the_known_headings_in_their_order():
    for version, body in VERSIONS.items():
        kinds = re.findall(r"^### (.+)$", body, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], version
        assert not re.search(r"^- ", body.partition("\n### ")[0], re.MULTILINE), (
            f"{version}: without a heading"
        )


def test_no_entry_stands_twice():
    entries = re.findall(r"^- (.+)$", TEXT, re.MULTILINE)

    assert len(entries) > 50
    assert sorted(entries) == sorted(set(entries))
    commands = [
        entry.partition(":")[0] for entry in entries if entry.startswith("`faultline ") and ": " in entry
    ]
    assert sorted(commands) == sorted(set(commands))
