"""A worker is killed between its effect and its commit. It holds three jobs at three stages.

The first job has written half of its rows. The second has written all of them and is about to commit. The
third has just committed, and its success is not reported yet. The first two must leave nothing behind and
are done again; the third must never be done again.
"""

import signal

from faultline.lab.drills.scenarios.lease_race import A, B
from faultline.lab.drills.stage.pauses import PausePoint
from faultline.lab.drills.stage.scene import Scene, wait_for_job


def play(scene: Scene) -> None:
    """A is killed when all three jobs are at their stage; B does the rest of them."""
    half, done, whole = (scene.enqueue() for _ in range(3))
    scene.chapters = {
        half: "half of its rows were written",
        whole: "all of its rows were written, and the commit was not sent",
        done: "it had committed, and had not reported it",
    }
    barriers = (f"half of job {half}", "before the commit", "after the commit", "B may start")
    for barrier in barriers:
        scene.close(barrier)
    pauses = [
        PausePoint("commit.sending", "before the commit", whole),
        PausePoint("commit.sent", "after the commit", done),
    ]
    a = scene.worker(A, jobs_max=3, pauses=pauses)
    b = scene.worker(B, jobs_max=3, gate="B may start")

    for what, job in (("half_written", half), ("paused", whole), ("paused", done)):
        wait_for_job(scene, A, what, job)
    scene.see(A, "committed before the kill", "has committed, and has not reported it yet", job=done)
    a.send(signal.SIGKILL)
    a.wait_exit()
    for job in scene.jobs:
        scene.see(A, "killed", "is KILLED (SIGKILL)", job=job)
        scene.see_lease_of(A, job=job)
    for barrier in barriers:
        scene.open(barrier)

    for job in (half, whole):
        wait_for_job(scene, B, "transaction_left", job)
    scene.stop(b)
