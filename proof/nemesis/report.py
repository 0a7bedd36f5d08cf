"""The report of a run: JSON for programs, one page of HTML for people, a table for the terminal."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from proof.nemesis.drawing import timeline
from proof.nemesis.mutants import MUTANTS
from proof.nemesis.oracle import Finding
from proof.nemesis.outcome import Outcome
from proof.nemesis.plan import KINDS

STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1150px; margin: 2rem auto; padding: 0 1rem;
       color: #1f2933; background: #fff }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25rem .7rem .25rem 0;
        border-bottom: 1px solid #e4e7eb; vertical-align: top } th { color: #6b7785; font-weight: 600 }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.kept { color: #15803d; font-weight: 600 } .broken { color: #c53030; font-weight: 700 }
.void { color: #b45309; font-weight: 700 } .dim { color: #6b7785 } .scroll { overflow-x: auto }
.verdict { font-size: 1.2rem } code { font-size: .92em } pre { white-space: pre-wrap; margin: .2rem 0 }
@media (prefers-color-scheme: dark) {
  body { color: #e4e7eb; background: #16191d } td, th { border-color: #333a42 }
  .kept { color: #4ade80 } .broken { color: #fc8181 } .void { color: #fbbf24 } .dim, th { color: #9aa5b1 } }
"""


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Everything that was found, for programs and for drawing it again."""
    return {"verdict": outcome.verdict, "never": outcome.never, **asdict(outcome)}


def write(outcome: Outcome, folder: Path) -> list[Path]:
    """Put page, picture and data into a folder, named by seed; answers where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"nemesis-{outcome.wanted.seed}" + (f"-{outcome.wanted.mutant}" if outcome.wanted.mutant else "")
    made = {
        ".html": as_html(outcome),
        ".svg": timeline(outcome.struck, outcome.samples, outcome.phases) + "\n",
        ".json": json.dumps(as_json(outcome), indent=1) + "\n",
    }
    for ending, text in made.items():
        (folder / f"{name}{ending}").write_text(text)
    return [folder / f"{name}{ending}" for ending in made]


def as_html(outcome: Outcome) -> str:
    """One page without a script and without anything from elsewhere."""
    return "\n".join(
        [
            "<!doctype html><html lang=en><meta charset=utf-8>",
            '<meta name=viewport content="width=device-width">',
            f"<title>Nemesis, seed {outcome.wanted.seed}: {outcome.verdict}</title><style>{STYLE}</style>",
            *_head(outcome),
            "<h2>Timeline</h2><div class=scroll>",
            timeline(outcome.struck, outcome.samples, outcome.phases),
            "</div><p class=dim>A bar is a fault, as long as it lasted; point at it to read what it was. "
            "Dashed ones could not be done just then. Red ground: the server did not answer.</p>",
            *_verdicts(outcome), *_sometimes(outcome), *_faults(outcome), *_counts(outcome), "</html>",
        ]
    )  # fmt: skip


def _head(outcome: Outcome) -> Iterator[str]:
    wanted = outcome.wanted
    yield f"<h1>Nemesis, seed {wanted.seed}</h1>"
    yield f"<p class='verdict {outcome.verdict}'>{_sentence(outcome)}</p>"
    if wanted.mutant:
        yield f"<p>Broken on purpose: <b>{wanted.mutant}</b>, {escape(MUTANTS[wanted.mutant].says)}.</p>"
    words = " · ".join(f"{name} {version}" for name, version in outcome.versions.items())
    about = f"{outcome.started} · {wanted.minutes:g} minutes of faults · {words}"
    yield f"<p class=dim>{escape(about)}<br>"
    yield f"Repeat it: <code>make nemesis ARGS='--seed {wanted.seed} --minutes {wanted.minutes:g}'</code></p>"
    for what, why in outcome.lacks.items():
        yield f"<p class=void>SKIPPED {escape(what)}: {escape(why)}</p>"
    for remark in outcome.remarks:
        yield f"<p class=broken>{escape(remark)}</p>"


def _sentence(outcome: Outcome) -> str:
    struck = sum(not one.missed for one in outcome.struck)
    match outcome.verdict:
        case "kept":
            return f"Every promise was kept through {struck} faults."
        case "void":
            return f"Void: {escape('; '.join(outcome.never))} never happened, so nothing is shown."
    return f"Broken: {escape(', '.join(finding.name for finding in outcome.broken))}."


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Cells are HTML already; a head that ends in # is a column of numbers."""
    classes = [" class=n" if name.endswith("#") else "" for name in head]
    cells = "".join(f"<th{kind}>{name.rstrip('#')}" for kind, name in zip(classes, head, strict=True))
    yield f"<div class=scroll><table><tr>{cells}"
    for row in rows:
        yield "<tr>" + "".join(f"<td{kind}>{cell}" for kind, cell in zip(classes, row, strict=True))
    yield "</table></div>"


def named(finding: Finding) -> str:
    """Its name, with its phase where that is not the storm."""
    return finding.name if finding.phase == "storm" else f"{finding.name}, {finding.phase} failover"


def _verdicts(outcome: Outcome) -> Iterator[str]:
    yield "<h2>What must always be true</h2>"
    yield from _table(
        ("", "invariant", "looked at#", "what it says"),
        [
            (
                "<span class=kept>kept</span>" if finding.holds else "<span class=broken>BROKEN</span>",
                escape(named(finding)), f"{finding.looked_at:,}",
                escape(finding.says) + "".join(f"<pre>{escape(told)}</pre>" for told in finding.examples),
            )
            for finding in outcome.findings
        ],
    )  # fmt: skip


def _sometimes(outcome: Outcome) -> Iterator[str]:
    yield "<h2>What must happen at least once, or the run is void</h2>"
    yield from _table(
        ("", "times#", "what"),
        [
            (
                "<span class=kept>seen</span>" if times else "<span class=void>NEVER</span>",
                f"{times:,}", escape(name),
            )
            for name, times in outcome.sometimes.items()
        ],
    )  # fmt: skip


def _faults(outcome: Outcome) -> Iterator[str]:
    done = Counter(one.kind for one in outcome.struck if not one.missed)
    missed = Counter(one.kind for one in outcome.struck if one.missed)
    yield "<h2>Faults</h2>"
    yield from _table(
        ("fault", "done#", "missed#", "what it is"),
        [
            (escape(kind), str(done[kind]), str(missed[kind]), escape(told.says))
            for kind, told in KINDS.items()
        ],
    )
    yield "<details><summary>Every one of them, in order</summary>"
    yield from _table(
        ("at#", "for#", "fault", "what came of it"),
        [
            (
                f"{one.began:.1f} s", f"{one.ended - one.began:.1f} s", escape(one.kind),
                f"<span class=dim>missed: {escape(one.remark)}</span>" if one.missed else escape(one.remark),
            )
            for one in outcome.struck
        ],
    )  # fmt: skip
    yield "</details>"


def _counts(outcome: Outcome) -> Iterator[str]:
    yield "<h2>Counts</h2>"
    yield from _table(
        ("what", "how many#"), [(escape(name), f"{many:,}") for name, many in outcome.counts.items()]
    )


def table(outcome: Outcome) -> Table:
    """The verdicts for the terminal."""
    shown = Table(box=None, padding=(0, 1), title_justify="left", title_style="bold")
    shown.title = f"{len(outcome.struck)} faults, {sum(one.missed for one in outcome.struck)} of them missed"
    for column in ("", "invariant", "looked at", "what it says"):
        shown.add_column(column, justify="right" if column == "looked at" else "left")
    for finding in outcome.findings:
        word = Text("kept", "green") if finding.holds else Text("BROKEN", "bold red")
        says = "\n".join((finding.says, *finding.examples))
        shown.add_row(word, named(finding), f"{finding.looked_at:,}", says)
    for name, times in outcome.sometimes.items():
        word = Text("seen" if times else "NEVER", "green" if times else "bold red")
        shown.add_row(word, "sometimes", f"{times:,}", name)
    return shown
