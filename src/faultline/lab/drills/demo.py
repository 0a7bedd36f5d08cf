"""The demo: a PostgreSQL of its own, ordinary jobs, a worker that wakes too late; and SQL judges."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from faultline.lab.drills import demo_jobs
from faultline.lab.drills.run_drill import BROKEN, INTERRUPTED
from faultline.lab.drills.scenarios import zombie
from faultline.lab.drills.stage.drill_database import DrillDatabase, stage
from faultline.lab.drills.stage.scene import Scene
from faultline.lab.drills.view import story
from faultline.lab.drills.view.drill_verdict import DrillVerdict, judge
from faultline.lab.drills.view.drill_verdict import table as verdict_table
from faultline.lab.drills.view.timeline import Timeline, export_svg
from faultline.lab.drills.view.trace import DrillStuck, Trace

DEMO_LEASE: Final = timedelta(seconds=2)
"""Longer than a drill's: a worker keeps its lease during the explanations, on busy machines too."""

NEXT: Final = """
Next, a database and a worker for an app of yours. Copy shop.py from the README ("Use it") into a file, then:

  {faultline} dev shop:app
"""


def _as_called() -> str:
    """How this program can be started from here: by its name only where the shell finds it."""
    called = Path(sys.argv[0])
    if called.name != "faultline":
        return "python -m faultline"
    return "faultline" if shutil.which("faultline") else os.path.relpath(called)


def run_demo(
    console: Console, *, sabotage: Callable[[str], None] | None = None, picture: Path | None = None
) -> int:
    """Show that a job survives its worker; 0 only if every promise shown was kept.

    `picture` writes the timeline as SVG. `sabotage` gets the DSN before the first step: a test breaks the
    database with it, and sees that the demo reports it.
    """
    began = time.monotonic()
    try:
        console.print(Rule("Faultline: a job survives its worker"))
        console.print(
            "\nStarting a PostgreSQL of its own, in a folder that goes with it ...", highlight=False
        )
        with stage(None) as place:
            if sabotage is not None:
                sabotage(place.dsn)
            verdict = _play(place, console, began, picture)
    except KeyboardInterrupt:
        console.print("\nStopped. Server and workers are gone, and so is the folder.", style="yellow")
        return INTERRUPTED
    _last_word(console, verdict, time.monotonic() - began)
    return 0 if verdict.kept else BROKEN


def _play(place: DrillDatabase, console: Console, began: float, picture: Path | None) -> DrillVerdict:
    stuck = None
    with Scene(place, Trace(), DEMO_LEASE) as scene:
        (version,) = scene.conn.execute("show server_version").fetchone() or ("",)
        ready = time.monotonic() - began
        console.print(
            f"PostgreSQL {version} is up and the schema is in place ({ready:.1f} s).\n", highlight=False
        )
        try:
            console.print(
                f"[bold]1. {demo_jobs.JOBS} ordinary jobs[/], one worker; some fail once and are repeated\n"
            )
            demo_jobs.play(scene, console, demo_jobs.JOBS)
            console.print("\n[bold]2. A worker that wakes too late[/], two worker processes\n")
            zombie.tell(scene, console)
        except DrillStuck as why:
            stuck = str(why)
        timeline = Timeline(story.read(scene.conn, scene.job))
        verdict = judge(scene.conn, "demo", job=scene.job, ordinary=demo_jobs.JOBS)
    console.print("\n[bold]3. What the ledger says of it[/]\n")
    console.print(timeline)
    console.print()
    if picture is not None:
        picture.write_text(export_svg(timeline, title="A worker wakes too late"))
    return verdict.and_stuck(stuck) if stuck else verdict


def _last_word(console: Console, verdict: DrillVerdict, seconds: float) -> None:
    console.print(verdict_table(verdict))
    console.print()
    if verdict.kept:
        console.print(Text(f"Every promise was kept. {seconds:.1f} s.", "bold green"))
        console.print(NEXT.format(faultline=_as_called()), highlight=False, markup=False)
    else:
        console.print(
            Text(f"{len(verdict.broken)} of {len(verdict.findings)} promises were BROKEN.", "bold red")
        )
