"""Run a drill, once or many times, and show what happened: trace, timeline, verdict."""

import contextlib
import time
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from faultline.drills import story
from faultline.drills.registry import DRILLS, Drill
from faultline.drills.scene import Scene
from faultline.drills.stage import Stage, stage
from faultline.drills.timeline import Timeline
from faultline.drills.trace import DRILL, DrillStuck, Sign, Trace
from faultline.drills.verdict import Verdict, count, counts_line, judge
from faultline.drills.verdict import table as verdict_table
from faultline.errors import InputError

BROKEN = 1
INTERRUPTED = 130
RUNS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a drill, and what the database says of it."""

    verdict: Verdict
    timelines: tuple[tuple[str, Timeline], ...]
    trace: Trace
    seconds: float


def run_drill(
    name: str, *, dsn: str | None = None, runs: int = 1, log_json: bool = False, console: Console
) -> int:
    """Rehearse a fault `runs` times; 0 when every promise was kept in every run, 1 when one was broken.

    Without a DSN on an embedded server; with one in a database of its own that is dropped afterwards or,
    where the role may not create one, in a queue and a schema of its own. `log_json` prints the structured
    events of all processes to the console, one JSON object a line, and nothing else.
    """
    if name not in DRILLS:
        raise InputError(f"no drill is called {name[:60]!a}; there are {', '.join(DRILLS)}")
    if not 1 <= runs <= RUNS_MAX:
        raise InputError(f"a drill is run from 1 to {RUNS_MAX} times; got {runs}")
    shown = Console(quiet=True) if log_json else console
    try:
        with stage(dsn) as place:
            done = [
                _run(DRILLS[name], place, console if log_json else None, shown, number, runs)
                for number in range(runs)
            ]
    except KeyboardInterrupt:
        shown.print("stopped; every process of the drill has ended", style="yellow")
        return INTERRUPTED
    _show(DRILLS[name], done, shown)
    return 0 if all(run.verdict.kept for run in done) else BROKEN


def _run(drill: Drill, place: Stage, events: Console | None, shown: Console, number: int, runs: int) -> Run:
    began = time.monotonic()
    trace = Trace(None if events is None else lambda sign: _print_json(events, sign))
    with Scene(place, trace, drill.lease) as scene:
        stuck = None
        try:
            drill.play(scene)
        except DrillStuck as why:
            stuck = str(why)
        verdict = judge(scene.conn, drill.verdict, job=scene.job, jobs=scene.jobs, **scene.about)
        verdict = verdict.counted(count(scene.conn, scene.jobs), drill.must_see)
        told = scene.chapters or {scene.job: ""}
        timelines = tuple((title, Timeline(story.read(scene.conn, job))) for job, title in told.items())
    verdict = verdict.and_stuck(stuck) if stuck else verdict
    trace.tell(
        Sign(
            DRILL,
            "verdict",
            {"drill": drill.name, "kept": verdict.kept, "broken": [f.promise for f in verdict.broken]},
        )
    )
    run = Run(verdict, timelines, trace, time.monotonic() - began)
    if runs > 1:
        word = "[green]kept[/]" if verdict.kept else f"[bold red]{verdict.word}[/]"
        shown.print(
            f"run {number + 1:>{len(str(runs))}} of {runs}: {word} in {run.seconds:.1f} s", highlight=False
        )
    return run


def _print_json(console: Console, sign: Sign) -> None:
    """Past rich's wrapping and colouring: a line is a line. A reader that has gone does not end the drill."""
    with contextlib.suppress(BrokenPipeError):
        console.file.write(sign.json + "\n")
        console.file.flush()


def _show(drill: Drill, done: list[Run], console: Console) -> None:
    """The first broken run, or else the last one; and of many runs how many kept each promise."""
    told = next((run for run in done if not run.verdict.kept), done[-1])
    console.print(Text.assemble("\n", (drill.name, "bold"), f"\n{drill.summary}\n"))
    console.print(trace_table(told.trace))
    console.print()
    for title, timeline in told.timelines:
        if title:
            console.print(title, style="bold")
        console.print(timeline)
        console.print()
    console.print(verdict_table(told.verdict))
    console.print(f"\n {counts_line(told.verdict)}", style="dim")
    if len(done) > 1:
        kept = sum(run.verdict.kept for run in done)
        seconds = sum(run.seconds for run in done)
        console.print(
            f"\n{kept} of {len(done)} runs kept every promise, {seconds / len(done):.2f} s a run",
            style="bold",
        )


def trace_table(trace: Trace) -> Table:
    """What the processes said, for people: seconds, process, event, facts."""
    shown = Table(
        box=None, padding=(0, 1), show_header=False, pad_edge=False, title="Trace", title_justify="left"
    )
    shown.title_style = "bold"
    for options in ({"justify": "right", "style": "dim"}, {}, {}):
        shown.add_column(no_wrap=True, **options)  # type: ignore[arg-type]
    shown.add_column(overflow="fold", style="dim")
    first = trace.signs[0].seconds if trace.signs else 0.0
    for sign in trace.signs:
        style = "bold red" if sign.what == "stale_write_blocked" else "default"
        facts = " ".join(
            f"{name}={value}" for name, value in sign.facts.items() if name not in ("task", "queue")
        )
        if sign.is_event:
            shown.add_row(f"{sign.seconds - first:.3f}", sign.who, Text(sign.what, style), Text(facts))
        else:
            shown.add_row(f"{sign.seconds - first:.3f}", sign.who, Text(sign.level), Text(sign.what))
    return shown
