"""Every drill by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from faultline.drills import lease_race, worker_crash
from faultline.drills.scene import Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """A rehearsed fault: how it is played, and which SQL file judges it."""

    name: str
    summary: str
    play: Callable[[Scene], None]
    verdict: str


DRILLS: Final[dict[str, Drill]] = {
    drill.name: drill
    for drill in (
        Drill(
            name="lease-race",
            summary="a worker is frozen in its commit, loses its job, wakes, and is refused",
            play=lease_race.play,
            verdict="lease_race",
        ),
        Drill(
            name="worker-crash",
            summary="a worker is killed in mid-job; its lease runs out and another does the work",
            play=worker_crash.play,
            verdict="worker_crash",
        ),
    )
}
