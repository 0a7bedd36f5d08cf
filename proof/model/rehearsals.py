"""Real runs to check: drills with real worker processes on a real server, and the ledger they leave."""

from collections.abc import Callable
from io import StringIO
from typing import Final

from rich.console import Console

from faultline.lab.drills import demo_jobs
from faultline.lab.drills.registry import DRILLS
from faultline.lab.drills.stage.drill_database import DrillDatabase, stage
from faultline.lab.drills.stage.scene import Scene
from faultline.lab.drills.view.trace import Trace
from proof.model.history import JobHistory
from proof.model.ledger import histories

JOBS: Final = 60
REHEARSED: Final = ("lease-race", "worker-crash")

Told = Callable[[str], None]


def rehearse(dsn: str | None, tell: Told) -> dict[str, list[JobHistory]]:
    """Play the drills, and a crowd of jobs of which some fail once; the histories of each."""
    with stage(dsn) as place:
        played = {}
        for name in REHEARSED:
            tell(f"drill {name}")
            with Scene(place, Trace()) as scene:
                DRILLS[name].play(scene)
                played[name] = list(
                    histories(scene.conn, jobs=[scene.job], effects=f"{place.schema}.effects")
                )
        tell(f"{JOBS} jobs and a worker")
        played["crowd"] = _crowd(place, {one.job_id for drill in played.values() for one in drill})
    return played


def _crowd(place: DrillDatabase, before: set[int]) -> list[JobHistory]:
    with Scene(place, Trace()) as scene:
        demo_jobs.play(scene, Console(file=StringIO()), JOBS)
        told = histories(scene.conn, effects=f"{place.schema}.effects")
        return [one for one in told if one.job_id not in before]
