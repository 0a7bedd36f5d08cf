"""Run the explorer, with a progress bar: scenarios as shipped, or mutants that it must find."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from proof.explorer.crew import ExplorerProcesses, News, Part, parts_of, server
from proof.explorer.mutants import MUTANTS
from proof.explorer.report import Findings, is_found, mutant_as_json, mutant_table, table
from proof.explorer.scenarios import SCENARIOS
from proof.explorer.scenarios.sizes import ORDERS
from proof.explorer.spec import file_name, spec
from proof.explorer.telling import told

BROKEN = 1


@dataclass(frozen=True)
class ExplorerOptions:
    """What was asked for."""

    processes: int = 4
    json: Path | None = None
    specs: Path | None = None


def explore_all(names: Sequence[str], wishes: ExplorerOptions, console: Console) -> int:
    """Play every order of these scenarios as shipped; 0 when every invariant held in all of them."""
    began, findings = time.monotonic(), Findings()
    with server() as postgres, _bar(console) as bar:
        parts = parts_of(names)
        task = bar.add_task("orders", total=sum(ORDERS.get(name, 1000) for name in names))
        for news in ExplorerProcesses(postgres, parts, wishes.processes).news():
            bar.advance(task, news.orders)
            findings.add(news)
        version = postgres.version
    seconds = time.monotonic() - began
    console.print(table(findings, seconds))
    console.print(
        f"{findings.orders:,} interleavings of real sessions on PostgreSQL {version},"
        f" {findings.orders / seconds:,.0f} a second:"
        f" {'every invariant held in every one' if findings.holds else 'NOT ALL IS WELL'}"
    )
    for name, news in findings.broken.items():
        _show(name, news, wishes, console)
    _write(wishes.json, findings.as_json(seconds, version))
    return 0 if findings.holds else BROKEN


def hunt(names: Sequence[str], wishes: ExplorerOptions, console: Console) -> int:
    """Explore each mutant until it is found; 0 when none survives."""
    parts = [Part(MUTANTS[name].scenario, mutant=name) for name in names]
    found: dict[str, News] = {}
    with server() as postgres, _bar(console) as bar:
        task = bar.add_task("mutants", total=len(parts))
        for news in ExplorerProcesses(postgres, parts, wishes.processes).news():
            if news.tally is not None:
                found[news.part.mutant] = news
                bar.advance(task)
    for name in names:
        _show(name, found[name], wishes, console)
    console.print(mutant_table([found[name] for name in names]))
    alive = [name for name in names if not is_found(found[name])]
    console.print(
        f"{len(names) - len(alive)} of {len(names)} mutants found", style="red" if alive else "green"
    )
    _write(wishes.json, {"alive": alive, "mutants": [mutant_as_json(found[name]) for name in names]})
    return BROKEN if alive else 0


def _show(name: str, news: News, wishes: ExplorerOptions, console: Console) -> None:
    """Print the first order that broke something as steps; write it as a spec where that was asked for."""
    order = news.tally.first_broken if news.tally else None
    if order is None:
        return
    console.rule(name, align="left", style="dim")
    for line in told(order):
        console.print(line, markup=False, highlight=False)
    if wishes.specs:
        wishes.specs.mkdir(parents=True, exist_ok=True)
        file = wishes.specs / f"{file_name(name)}.spec"
        file.write_text(spec(SCENARIOS[news.part.scenario], order, title=name, functions=news.functions))
        console.print(f"written as {file}", style="dim")


def _write(file: Path | None, report: dict[str, Any]) -> None:
    if file:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(report)))


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
