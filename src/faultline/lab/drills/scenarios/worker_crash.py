"""A worker is killed in mid-job: its lease runs out, another does the work, the crash is counted."""

import signal

from faultline.lab.drills.scenarios.lease_race import A, B
from faultline.lab.drills.stage.scene import Scene


def play(scene: Scene) -> None:
    """A is killed after it wrote its rows and before it commits them; B does the job from the start."""
    scene.enqueue()
    scene.close("B may start")
    scene.close("attempt 1")
    a = scene.worker(A)
    b = scene.worker(B, gate="B may start")

    scene.trace.wait_for_event(A, "at_barrier")
    a.send(signal.SIGKILL)
    a.wait_exit()
    scene.open("B may start")
    scene.see(A, "killed")
    scene.see_lease_of(A)
    if a.wait_gone():
        scene.see(A, "gone")

    scene.wait_committed(B)
    scene.open("attempt 1")
    scene.stop(b)
