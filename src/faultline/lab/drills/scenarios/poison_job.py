"""A job kills every process it runs in. Its first worker holds eight innocent jobs at the same time.

The database cannot tell which of the nine jobs it was, so each is a suspect and runs alone, in a child
process of the next worker. The innocent jobs succeed there. Poison kills only its child, until it is dead.
"""

from faultline.lab.drills.scenarios.lease_race import A, B
from faultline.lab.drills.stage.scene import Scene
from faultline.lab.drills.view.trace import DRILL, TraceSign
from faultline.lab.drills.workloads import detonate
from faultline.store import calls
from faultline.store.pool import Store

INNOCENTS = 8
ALL_AT_ONCE = INNOCENTS + 1

ENDED = (
    "select from faultline.list_jobs(queue => %s, most => 100) as job"
    " having count(*) filter (where job.state not in ('succeeded', 'dead')) = 0"
)


def play(scene: Scene) -> None:
    """All nine run in A when the poison goes off; B has them after their leases have run out."""
    for barrier in ("attempt 1", "detonation", "B may start"):
        scene.close(barrier)
    poison = _poison(scene)
    innocents = [scene.enqueue() for _ in range(INNOCENTS)]
    scene.job = poison
    scene.chapters = {poison: "the poison", innocents[0]: "one of the eight that ran beside it"}
    a = scene.worker(A, jobs_max=ALL_AT_ONCE)
    b = scene.worker(B, jobs_max=ALL_AT_ONCE, gate="B may start")

    for job in scene.jobs:
        _wait_begun(scene, A, job)
    scene.open("detonation")
    code = a.wait_exit()
    for job in scene.jobs:
        scene.see(
            A, "killed by its job", f"DIES of the poison, all nine in its hands (signal {-code})", job=job
        )
        scene.see_lease_of(A, job=job)
    scene.open("attempt 1")
    scene.open("B may start")

    scene.wait_until(ENDED, [scene.queue], "all nine have ended")
    if b.process.poll() is None:
        scene.see(B, "outlived it", "is still there, and so is everything else it had to do")
    scene.stop(b)


def _poison(scene: Scene) -> int:
    new = detonate.using(queue=scene.queue).new()
    job = Store.run_in(scene.conn, calls.enqueue(new))
    scene.jobs.append(job)
    scene.trace.tell(TraceSign(DRILL, "enqueued", {"job_id": job, "task": new.task, "queue": new.queue}))
    return job


def _wait_begun(scene: Scene, who: str, job: int) -> None:
    scene.trace.wait_for(
        lambda sign: (sign.who, sign.what, sign.facts.get("job_id")) == (who, "at_barrier", job),
        30,
        f"{who} has begun job {job}",
    )
