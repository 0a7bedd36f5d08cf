"""Every drill by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from faultline.lab.drills.scenarios import (
    crash_mid_apply,
    database_restart,
    duplicate_submission,
    failover,
    lease_race,
    poison_job,
    self_zombie,
    worker_crash,
)
from faultline.lab.drills.stage.drill_database import LEASE
from faultline.lab.drills.stage.scene import Scene

Need = Literal["a database", "a server of its own", "a server of its own, and a standby"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """A rehearsed fault: how it is played, which SQL file judges it, and what must be seen or it is void."""

    name: str
    summary: str
    play: Callable[[Scene], None]
    verdict: str
    needs: Need = "a database"
    must_see: tuple[str, ...] = ()
    lease: timedelta = LEASE
    through_server: Callable[[Scene], None] | None = None
    """The same fault, played by workers that know a server only; None where that is not rehearsed."""


DRILLS: Final[dict[str, Drill]] = {
    drill.name: drill
    for drill in (
        Drill(
            name="lease-race",
            summary="a worker is frozen in its commit, loses its job, wakes, and is refused",
            play=lease_race.play,
            verdict="lease_race",
            must_see=("frozen", "expired", "refused"),
            through_server=lease_race.play,
        ),
        Drill(
            name="worker-crash",
            summary="a worker is killed in mid-job; its lease runs out and another does the work",
            play=worker_crash.play,
            verdict="worker_crash",
            must_see=("killed", "expired"),
            through_server=worker_crash.play,
        ),
        Drill(
            name="crash-mid-apply",
            summary="a worker is killed between effect and commit, with three jobs in hand at three places",
            play=crash_mid_apply.play,
            verdict="crash_mid_apply",
            must_see=("killed", "expired", "committed before the kill"),
        ),
        Drill(
            name="duplicate-submission",
            summary="many submit one key at once, some with other args; one is killed and starts again",
            play=duplicate_submission.play,
            verdict="duplicate_submission",
            must_see=("killed", "waited for the key", "answered: job", "answered: conflict"),
        ),
        Drill(
            name="database-restart",
            summary="the server stops at once and starts again under jobs in mid-work and in mid-commit",
            play=database_restart.play,
            verdict="database_restart",
            needs="a server of its own",
            must_see=("halted", "resumed", "commit unanswered", "commit unfinished", "enqueue unanswered"),
            lease=timedelta(seconds=10),
        ),
        Drill(
            name="failover",
            summary="the primary dies: a standby that has everything takes over, and one that has not",
            play=failover.play,
            verdict="failover_lossy",
            needs="a server of its own, and a standby",
            must_see=("halted", "promoted", "lost commit", "expired", "old lease refused"),
        ),
        Drill(
            name="self-zombie",
            summary="a worker stalls past its lease and claims its own job again; its old attempt is refused",
            play=self_zombie.play,
            verdict="self_zombie",
            must_see=("stalled", "expired", "refused", "late commit refused"),
            through_server=self_zombie.play_through_server,
        ),
        Drill(
            name="poison-job",
            summary="a job kills every process it runs in; eight others were in its first worker's hands",
            play=poison_job.play,
            verdict="poison_job",
            must_see=("killed by its job", "expired", "failed", "dead", "outlived it"),
        ),
    )
}
