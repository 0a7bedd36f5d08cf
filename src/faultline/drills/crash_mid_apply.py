"""A worker is killed between its effect and its commit, with three jobs in hand at three places of the way.

One has written half of its rows, one has written all of them and is about to commit, one has just
committed and told nobody. The first two must leave nothing behind and be done again; the third must never be
done again.
"""

import signal

from faultline.drills.lease_race import A, B
from faultline.drills.pauses import Pause
from faultline.drills.scene import Scene, wait_for_job


def play(scene: Scene) -> None:
    """A is killed when all three are where they should be; B does what is left of them."""
    half, done, whole = (scene.enqueue() for _ in range(3))
    scene.chapters = {
        half: "half of its rows were written",
        whole: "all of its rows were written, and the commit was not sent",
        done: "it had committed, and nobody had been told",
    }
    barriers = (f"half of job {half}", "before the commit", "after the commit", "B may start")
    for barrier in barriers:
        scene.close(barrier)
    pauses = [
        Pause("commit.sending", "before the commit", whole),
        Pause("commit.sent", "after the commit", done),
    ]
    a = scene.worker(A, jobs_max=3, pauses=pauses)
    b = scene.worker(B, jobs_max=3, gate="B may start")

    for what, job in (("half_written", half), ("paused", whole), ("paused", done)):
        wait_for_job(scene, A, what, job)
    scene.see(A, "committed before the kill", "has committed, and has told nobody yet", job=done)
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
