"""The report: a table for the terminal, JSON and Markdown for the folder of the run."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from proof.ha.judge import HaFinding
from proof.ha.play import Played

COLOURS: Final = {"kept": "green", "broken": "bold red", "void": "yellow"}
PROMISES: Final = (
    "lost", "commits lost", "double effects", "ids twice", "keys twice", "tokens backwards", "stuck", "dead",
    "failed", "tracebacks", "processes", "drained", "audit", "audit --ids",
)  # fmt: skip
RECOVERY: Final = (
    "multi s", "haproxy s", "pgbouncer s", "remote s", "p-multi s", "p-keyed s", "p-haproxy s", "p-http s",
    "slowest call s", "log lines/5 s",
)  # fmt: skip
Cell = tuple[str, str]
"""A text and its style."""


def tables(played: Sequence[Played]) -> list[Table]:
    """What was promised, and how long each way took to work again."""
    return [_table(played, PROMISES), _table(played, RECOVERY)]


def _table(played: Sequence[Played], names: Sequence[str]) -> Table:
    drawn = Table(box=None, header_style="dim", padding=(0, 1))
    for name in _headings(names):
        drawn.add_column(name, justify="left" if name in ("scenario", "verdict") else "right")
    for each in played:
        drawn.add_row(*(Text(text, style=style) for text, style in _cells(each, names)))
    return drawn


def _headings(names: Sequence[str]) -> list[str]:
    return ["scenario", "verdict", "outage s", "acked", *names]


def _cells(played: Played, names: Sequence[str]) -> list[Cell]:
    found = {finding.name: finding for finding in played.judgement.findings}
    verdict = played.judgement.verdict
    outage = f"{played.facts.since - played.facts.began:.1f}" if played.promotions else "-"
    first: list[Cell] = [(played.scenario.name, ""), (verdict.upper(), COLOURS[verdict])]
    return [*first, (outage, ""), (str(acked(played)), ""), *(_cell(found.get(name)) for name in names)]


def _cell(finding: HaFinding | None) -> Cell:
    return ("-", "dim") if finding is None else (str(finding.found), "" if finding.kept else "bold red")


def acked(played: Played) -> int:
    return len({ack.n for ack in played.facts.acks if ack.id is not None})


def why(played: Played) -> list[str]:
    """A line for each finding that is broken, and for each thing that did not happen."""
    broken = [
        f"{finding.name}: {finding.found} {_some(finding.examples)}".rstrip()
        for finding in played.judgement.findings
        if not finding.kept
    ]
    return [*broken, *(f"void: {what}" for what in played.judgement.void)]


def _some(examples: tuple[object, ...]) -> str:
    return f"such as {examples[0]}" if examples else ""


def document(played: Played) -> dict[str, Any]:
    facts = played.facts
    errors = Counter(f"{ack.who} {ack.error}" for ack in facts.acks if ack.error)
    return {
        "scenario": played.scenario.name, "says": played.scenario.says, "sync": played.scenario.sync,
        "verdict": played.judgement.verdict, "why": why(played), "acked": acked(played),
        "steps": played.steps,
        "promotions": [
            (round(each.t - facts.began, 1), each.server, *each.history) for each in played.promotions
        ],
        "findings": {each.name: [each.found, each.kept, each.examples] for each in played.judgement.findings},
        "outcomes": dict(facts.rows.outcomes), "refused": dict(errors), "exits": dict(facts.exits),
        "recovered": played.recovered, "seconds": round(played.seconds),
    }  # fmt: skip


def write(played: Sequence[Played], runs: Path) -> None:
    """report.json beside each run's logs, and all of them in one table of Markdown."""
    for each in played:
        text = json.dumps(document(each), indent=1, default=str)
        (each.folder / "report.json").write_text(text + "\n")
    (runs / "report.md").write_text(markdown(played))


def markdown(played: Sequence[Played]) -> str:
    notes = [f"- {each.scenario.name}: {line}" for each in played for line in why(each)]
    return "\n".join([*_rows(played, PROMISES), "", *_rows(played, RECOVERY), "", *notes]) + "\n"


def _rows(played: Sequence[Played], names: Sequence[str]) -> list[str]:
    lines = [_headings(names), ["---"] * len(_headings(names))]
    lines += [[_plain(cell) for cell in _cells(each, names)] for each in played]
    return [f"| {' | '.join(line)} |" for line in lines]


def _plain(cell: Cell) -> str:
    text, style = cell
    return f"**{text}**" if "bold" in style else text


def verdict(played: Sequence[Played], wanted: int) -> str:
    """Of the whole run: kept only where every scenario that was asked for is."""
    verdicts = [each.judgement.verdict for each in played]
    if "broken" in verdicts:
        return "broken"
    return "kept" if verdicts.count("kept") == wanted else "void"
