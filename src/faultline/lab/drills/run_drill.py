"""Run drills, once or many times, and show what happened: trace, timeline, verdict."""

import contextlib
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psycopg
from rich.console import Console

from faultline.errors import FaultlineError, InputError
from faultline.lab.drills.drill_results import DrillResult, RehearsedRun, Versions, document
from faultline.lab.drills.html_report import page
from faultline.lab.drills.registry import DRILLS, Drill
from faultline.lab.drills.stage.drill_database import DrillDatabase, stage
from faultline.lab.drills.stage.scene import Scene, World
from faultline.lab.drills.stage.standby import can_stand_by
from faultline.lab.drills.view import story
from faultline.lab.drills.view.drill_verdict import DrillVerdict, PromiseFinding, count, judge
from faultline.lab.drills.view.terminal_view import show_line, show_result, show_sum
from faultline.lab.drills.view.timeline import Timeline
from faultline.lab.drills.view.trace import DRILL, Trace, TraceSign
from faultline.remote.grpc_extra import require_grpc

BROKEN: Final = 3
"""A promise was broken, or a fault did not happen: as other commands say that a check failed."""

INTERRUPTED: Final = 130
RUNS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillRequest:
    """What to play, where, and how to tell it.

    Without a DSN on an embedded server; with one in a database of its own that is dropped afterwards or,
    where the role may not create one or `in_place` is asked for, in a queue and a schema of its own.
    `log_json` prints the structured events of all processes, one JSON object a line, and nothing else;
    `as_json` one document of all verdicts. `report` writes an HTML page.
    """

    dsn: str | None = None
    runs: int = 1
    in_place: bool = False
    log_json: bool = False
    as_json: bool = False
    report: Path | None = None
    through_server: bool = False
    """A server stands before the database, and the workers know only the server."""


def run_drill(
    name: str,
    *,
    dsn: str | None = None,
    runs: int = 1,
    log_json: bool = False,
    through_server: bool = False,
    console: Console,
) -> int:
    """Rehearse one fault `runs` times; 0 when every promise was kept in every run, 3 when one was broken."""
    return run_drills(
        [name], DrillRequest(dsn=dsn, runs=runs, log_json=log_json, through_server=through_server), console
    )


def run_drills(names: Sequence[str], wish: DrillRequest, console: Console) -> int:
    """Rehearse faults, each `wish.runs` times, and report as the wish asks."""
    drills = _chosen(names, wish)
    shown = Console(quiet=True) if wish.log_json or wish.as_json else console
    try:
        with stage(wish.dsn, in_place=wish.in_place) as place:
            with place.connect() as conn:
                versions = Versions.of(conn, place.words)
            results = [_play(drill, place, wish, console, shown, many=len(drills) > 1) for drill in drills]
    except KeyboardInterrupt:
        shown.print("stopped; every process of the drill has ended", style="yellow")
        return INTERRUPTED
    if len(drills) > 1:
        show_sum(results, shown)
    if wish.as_json:
        console.file.write(json.dumps(document(results, versions), indent=2) + "\n")
    if wish.report is not None:
        wish.report.write_text(page(results, versions), encoding="utf-8")
        shown.print(f"the report is in {wish.report}", highlight=False)
    return 0 if all(result.passed for result in results) else BROKEN


def _chosen(names: Sequence[str], wish: DrillRequest) -> list[Drill]:
    for name in names:
        if name not in DRILLS:
            raise InputError(f"no drill is called {name[:60]!a}; there are {', '.join(DRILLS)}")
    if not 1 <= wish.runs <= RUNS_MAX:
        raise InputError(f"a drill is run from 1 to {RUNS_MAX} times; got {wish.runs}")
    drills = [DRILLS[name] for name in names]
    if wish.through_server:
        require_grpc()
    if wish.through_server and all(drill.through_server is None for drill in drills):
        able = ", ".join(drill.name for drill in DRILLS.values() if drill.through_server is not None)
        raise InputError(f"{', '.join(names)} is not rehearsed through a server; there are {able}")
    if wish.dsn is not None and all(drill.needs != "a database" for drill in drills):
        needy = ", ".join(f"{drill.name} needs {drill.needs}" for drill in drills)
        raise InputError(f"{needy}: leave the DSN out, and an embedded one is started for it")
    return drills


def _why_not(drill: Drill, place: DrillDatabase, wish: DrillRequest) -> str:
    """Why a drill cannot be played here; nothing when it can."""
    if wish.through_server and drill.through_server is None:
        return "it is not rehearsed through a server"
    if drill.needs == "a database":
        return ""
    if place.server is None:
        return f"it needs {drill.needs}, and is played without a DSN"
    if drill.needs.endswith("standby") and not can_stand_by(place.server):
        return f"it needs {drill.needs}, and {place.server.binaries} has no pg_basebackup"
    return ""


def _play(
    drill: Drill, place: DrillDatabase, wish: DrillRequest, console: Console, shown: Console, *, many: bool
) -> DrillResult:
    if why := _why_not(drill, place, wish):
        result = DrillResult(drill, skipped=why)
    else:
        with shown.status(f"{drill.name}: {drill.summary}") if many else contextlib.nullcontext():
            result = DrillResult(drill, tuple(_runs(drill, place, wish, console, shown)))
    if many:
        show_line(result, shown)
    if result.runs and (not many or not result.passed):
        show_result(result, shown)
    return result


def _runs(
    drill: Drill, place: DrillDatabase, wish: DrillRequest, console: Console, shown: Console
) -> list[RehearsedRun]:
    done = []
    for number in range(1, wish.runs + 1):
        events = console if wish.log_json else None
        done.append(run := rehearse(drill, place, events, through_server=wish.through_server))
        if wish.runs > 1:
            word = f"[{'green' if run.verdict.kept else 'bold red'}]{run.verdict.word}[/]"
            of = f"run {number:>{len(str(wish.runs))}} of {wish.runs}"
            shown.print(f"{of}: {word} in {run.seconds:.1f} s", highlight=False)
    return done


def rehearse(
    drill: Drill, place: DrillDatabase, events: Console | None = None, *, through_server: bool = False
) -> RehearsedRun:
    """Play a drill once, and ask the database what came of it."""
    began = time.monotonic()
    trace = Trace(None if events is None else lambda sign: _print_json(events, sign))
    verdict, stuck = DrillVerdict(()), None
    timelines: tuple[tuple[str, Timeline], ...] = ()
    play = drill.through_server if through_server else drill.play
    assert play is not None
    with Scene(place, trace, drill.lease, through_server=through_server) as scene:
        try:
            play(scene)
        except FaultlineError as why:
            stuck = str(why)
        try:
            verdict, timelines = _judged(drill, scene)
        except psycopg.OperationalError as error:  # the drill ended in the middle, with its server away
            stuck = stuck or str(error)
    verdict = verdict.and_stuck(stuck) if stuck else verdict
    broken = [finding.promise for finding in verdict.broken]
    trace.tell(TraceSign(DRILL, "verdict", {"drill": drill.name, "kept": verdict.kept, "broken": broken}))
    return RehearsedRun(verdict, timelines, trace, time.monotonic() - began)


def _judged(drill: Drill, scene: Scene) -> tuple[DrillVerdict, tuple[tuple[str, Timeline], ...]]:
    """What each world in which the drill ended says of it, as one verdict, and the stories worth telling."""
    scene.gather()
    told = scene.chapters or {scene.job: ""}
    worlds = scene.worlds or [World("", scene.conn, drill.verdict, told)]
    findings: list[PromiseFinding] = []
    counts: Counter[str] = Counter()
    timelines = []
    for world in worlds:
        about = {"job": scene.job, "jobs": scene.jobs, **scene.about}
        found = judge(world.conn, world.verdict, **about).findings
        findings += [replace(one, promise=_titled(world.title, one.promise)) for one in found]
        counts += count(world.conn, scene.jobs)
        for job, title in world.chapters.items():
            timelines.append((_titled(world.title, title), Timeline(story.read(world.conn, job))))
    return DrillVerdict(tuple(findings)).counted(counts, drill.must_see), tuple(timelines)


def _titled(title: str, words: str) -> str:
    return f"{title}: {words}" if title else words


def _print_json(console: Console, sign: TraceSign) -> None:
    """Without rich's wrapping and colours: a line stays a line. A lost reader does not end the drill."""
    with contextlib.suppress(BrokenPipeError):
        console.file.write(sign.json + "\n")
        console.file.flush()
