"""docs/benchmarks.md, made from the JSON of the runs alone."""

import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.peers import failure_tables, musts, one_row_tables, places, tables
from benchmarks.peers.figures import Run

RESULTS = "peers.json"
FAILURES = "peers-failures.json"
ONE_ROW = "peers-one-row.json"

OPENING = """\
# Benchmarks: Faultline and its peers

<!-- Made by `python -m benchmarks.peers page` from benchmarks/results/: change the generator, not this. -->

Faultline and existing job queues on one machine, in one run, on one PostgreSQL, each through its public
API: how fast they enqueue and drain, how soon they begin, what they cost the database, and what happens when
a worker dies or comes back late. Where Faultline is behind, the page says so."""

METHOD = """\
`make compare` does all of it: it installs the peers into an environment of their own, starts PostgreSQL (and
redis, where there is one), measures, and makes this page.
[The harness](../benchmarks/peers/README.md) has one small file for each system.

- Per repeat the phases go one after another, and within a phase the systems go in random order, so a drift of
  the machine hits all alike. Every phase of every system starts from a fresh copy of a template database with
  its own schema, after a CHECKPOINT.
- **Enqueue, one at a time**: one awaited call after another on one connection, after 20 calls to warm up.
- **Enqueue in bulk**: the library's own bulk API; what stands in for a missing one is in the settings below.
- **Drain**: workers start on a full queue. The clock runs from the first handler's start to the moment at
  which the library's own tables say that nothing is unfinished. Handlers do nothing but count themselves in a
  file. `*` marks a drain that was cut at its time limit: its rate is completed jobs by elapsed time. One that
  takes less than {short_s:g} s is measured {turns} times in each repeat, in turn with the others, and its
  middle counts.
- **Pickup**: one job every {latency_ms:g} ms for {latency_s:g} s, one idle worker; from the return of the
  enqueue call to the handler's start, by the clock of the one host. "After the commit" counts from the moment
  the server noted for the job's commit (`track_commit_timestamp`), so only systems on PostgreSQL have it.
  "Enqueue and pickup together" counts from before the call, so that a library gains nothing by returning
  late.
- **At a held depth** (where measured): a producer keeps {depth:,} jobs waiting while one worker drains;
  handlers begun per second, after a third of the time to warm up.
- **At an offered rate** (where measured): {rate:,} jobs a second on a timetable, in bulk every 10 ms, one
  worker; from the moment a job was due to its handler's start. `*`: not all had begun 5 s after the end.
- **WAL**: what the server wrote during the drain, by completed job; heartbeats and autovacuum in that time
  are included.
- Middle figures are medians of the repeats. A ratio is one of medians; in brackets stand the extremes of the
  single repeats."""

ELSEWHERE = """\
Not compared here: claims under a pinned horizon, a million waiting or scheduled jobs, memory."""

FULL = {"repeats": 3, "jobs": 20_000, "rows": 10_000}
QUIET_CORES = 0.1
"""So much of a core may be others' in the middle step."""


def render(
    throughput: dict[str, Any], failures: dict[str, Any] | None, one_row: dict[str, Any] | None = None
) -> str:
    """The whole page as Markdown."""
    run = Run(throughput)
    lines = [OPENING, *_caution(run), "", "## The goals", "", *musts.table(run), "", ELSEWHERE]
    lines += ["", "## Rates and times", *tables.sections(run), *_errors(run)]
    if one_row:
        rows = Run(one_row)
        lines += ["", "## One row, once", *_caution(rows), *one_row_tables.sections(rows), *_errors(rows)]
        lines += ["", *_place(rows, None)]
    if failures:
        lines += ["", "## Failures", *failure_tables.sections(failures)]
    lines += ["", "## How it was measured", "", METHOD.format(**throughput["config"])]
    lines += ["", "## Where, and how quiet it was", "", *_place(run, failures)]
    lines += ["", "## Versions and settings", "", *_settings(throughput, failures)]
    return "\n".join(lines) + "\n"


def _caution(run: Run) -> list[str]:
    """A word of warning, when the run was too short or its machine too busy to go by."""
    config = run.data["config"]
    reasons = []
    if any(config.get(name, least) < least for name, least in FULL.items()):
        reasons.append("it was short")
    foreign = _collected(run, "_foreign_cores")
    if foreign and statistics.median(foreign) >= QUIET_CORES:
        reasons.append("others were at work on the machine")
    if not reasons:
        return []
    return ["", f"> **This run is a trial, not a measurement**: {' and '.join(reasons)}. Do not go by it."]


def _errors(run: Run) -> list[str]:
    """Steps that failed: a gap in a table has its reason here."""
    failed = [
        f"- {system}, repeat {number}: `{name.removesuffix('_error')}` failed"
        for system, number, row in run.rows()
        for name in row
        if name.endswith("_error")
    ]
    return ["", "Steps that failed (the JSON has the reasons):", "", *failed] if failed else []


def _place(run: Run, failures: dict[str, Any] | None) -> list[str]:
    data = run.data
    machine = data["machine"]
    settings = ", ".join(f"{name} = {value}" for name, value in sorted(data["pg_settings"].items()))
    lines = [
        f"- {machine['cores']} cores ({machine['processor']}), {machine['memory_gb']:g} GB, "
        f"{machine['system']}; Python {machine['python']}",
        f"- {data['postgres'].split(' on ')[0]}: {settings}",
        f"- Faultline at commit {data['commit'] or 'unknown'}",
        f"- {data['config']['repeats']} repeat(s) of {data['config']['jobs']:,} jobs of about 105 bytes, "
        f"{data['started']} to {data['ended']}",
        f"- {_quietness(run)}",
    ]
    if failures:
        lines.append(f"- the failures: all systems at once, {failures['started']} to {failures['ended']}")
    return lines


def _quietness(run: Run) -> str:
    """What others did meanwhile, by CPU time; and the disk's own pace."""
    foreign = _collected(run, "_foreign_cores")
    disk = _collected(run, "_disk_us")
    if not foreign or not disk:
        return "how quiet the machine was is not known"
    middle = statistics.median(foreign)
    verdict = "quiet" if middle < QUIET_CORES else "not quiet: trust the ratios more than the figures"
    return (
        f"other processes used {middle:.2f} cores in the middle step and {max(foreign):.2f} in the worst "
        f"({verdict}); a write of 8 kB with fdatasync took {statistics.median(disk):.0f} µs "
        f"({min(disk):.0f}–{max(disk):.0f})"
    )


def _collected(run: Run, ending: str) -> list[float]:
    return [value for _, _, row in run.rows() for name, value in row.items() if name.endswith(ending)]


def _settings(throughput: dict[str, Any], failures: dict[str, Any] | None) -> list[str]:
    lines = ["| system | versions | settings |", "| --- | --- | --- |"]
    for system, meta in throughput["meta"].items():
        versions = ", ".join(f"{package} {version}" for package, version in meta["versions"].items())
        notes = "; ".join(note for note in (meta["settings"], meta["single_note"], meta["bulk_note"]) if note)
        lines.append(f"| {system} | {versions} | {notes} |")
    absent = {**(failures or {}).get("absent", {}), **throughput["absent"]}
    for system, reason in absent.items():
        lines.append(f"| {system} | absent | could not run here: {' '.join(reason.split())[:200]} |")
    return lines


def load(
    folder: Path = places.RESULTS,
) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any] | None]:
    """The JSON of the throughput run and, where there were such runs, of the failures and of one row."""
    failures, one_row = (
        json.loads((folder / name).read_text()) if (folder / name).exists() else None
        for name in (FAILURES, ONE_ROW)
    )
    return json.loads((folder / RESULTS).read_text()), failures, one_row
