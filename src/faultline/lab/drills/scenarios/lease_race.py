"""The first drill: a worker is frozen in its commit, loses its job, wakes, and is refused."""

import signal

from faultline.lab.drills.stage.scene import Scene

FREEZE = "commit.sending=freeze"
FREEZE_BEFORE_SERVER = "settle.sending=freeze"
"""Through a server a handler's success is sent by its worker, after the handler has returned."""

A, B = "A", "B"


def play(scene: Scene) -> None:
    """A claims and freezes just before its commit is sent; B takes over and commits; A wakes and sends it.

    The drill never sleeps: a barrier in the database keeps B from a claim before A's, and after that only
    the lease decides.
    """
    scene.enqueue()
    scene.close("B may start")
    a = scene.worker(A, failpoints=FREEZE_BEFORE_SERVER if scene.through_server else FREEZE)
    b = scene.worker(B, gate="B may start")

    a.wait_stopped()
    scene.open("B may start")
    scene.see(A, "frozen")
    scene.see_lease_of(A)

    scene.wait_committed(B)
    scene.see(A, "continued")
    a.send_to_group(signal.SIGCONT)
    wait_answered(scene, A)
    scene.stop(a, b)


def wait_answered(scene: Scene, who: str) -> None:
    """Wait until this worker's late write was answered: refused and recorded, or let through."""
    if not scene.through_server:
        scene.trace.wait_for_event(who, "transaction_left")
    scene.trace.wait_for(
        lambda sign: (
            (sign.what == "stale_write_blocked" and sign.who == who)
            or (sign.what == "committed" and sign.facts["worker"] == who)
        ),
        30,
        f"the late write of {who} is answered",
    )
