"""The table of mutants in docs/promises.md, between two marks, written by the run that made it."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from proof.mutants.mutant import ROOT
from proof.mutants.trial import Verdict

PAGE = ROOT / "docs" / "promises.md"
BEGIN = "<!-- mutants: written by `make mutants ARGS=--write` -->"
END = "<!-- mutants: end -->"


def rendered(verdicts: Sequence[Verdict], version: str, today: date) -> str:
    """The table, under a line with its counts and its date."""
    killed = sum(verdict.word == "killed" for verdict in verdicts)
    lines = [
        f"{len(verdicts)} mutants, {killed} killed, {len(verdicts) - killed} alive or unfit; "
        f"{today:%Y-%m-%d}, PostgreSQL {version}.",
        "",
        "| promise | what is broken | where | the first test that failed |",
        "| --- | --- | --- | --- |",
    ]
    lines += [_row(verdict) for verdict in sorted(verdicts, key=_number)]
    return "\n".join(lines)


def _row(verdict: Verdict) -> str:
    mutant = verdict.mutant
    first = verdict.first or f"**{verdict.word}** {verdict.said}"
    path, _, test = first.partition("::")
    test = test.partition("[")[0].removeprefix("test_").replace("_", " ")
    where = ", ".join(f"`{name}`" for name in re.sub(r"sql/functions/\w+/", "", mutant.files).split(", "))
    return f"| {mutant.promise} | {mutant.name} | {where} | {test} (`{path}`) |"


def _number(verdict: Verdict) -> int:
    return int(verdict.mutant.promise[1:])


def write(verdicts: Sequence[Verdict], version: str, today: date) -> None:
    """Put the table into the page, in the place of the one that was there."""
    text = PAGE.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise LookupError(f"{PAGE.name} has no {BEGIN} and {END}")
    PAGE.write_text(f"{before}{BEGIN}\n{rendered(verdicts, version, today)}\n{END}{after}")


def as_json(verdicts: Sequence[Verdict], version: str, today: date) -> dict[str, Any]:
    """The same for programs."""
    return {
        "date": today.isoformat(),
        "postgresql": version,
        "mutants": [
            {
                "name": verdict.mutant.name,
                "promise": verdict.mutant.promise,
                "files": [patch.file for patch in verdict.mutant.patches],
                "verdict": verdict.word,
                "first_test_that_failed": verdict.first,
                "said": verdict.said,
                "seconds": round(verdict.seconds, 1),
            }
            for verdict in verdicts
        ],
    }
