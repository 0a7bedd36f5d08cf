"""One worker, twice: it stalls past its lease, claims its own job again, and its older attempt comes late.

A check that compares only the worker lets the older attempt through: it is the same worker. Token and claim
id tell the two attempts apart.
"""

import signal

from faultline.lab.drills.scenarios.lease_race import A
from faultline.lab.drills.stage.pauses import PausePoint
from faultline.lab.drills.stage.scene import Scene, wait_for_job
from faultline.lab.drills.view.trace import TraceSign

GUARD = "guard"
LATE, LOOP = "the late commit", "the loop goes on"
EXPIRED = "select from faultline.history(%s) as entry where entry.outcome = 'expired'"


def play(scene: Scene) -> None:
    """A is stopped just before its commit, and wakes after its lease; then it meets its own newer attempt.

    `guard` works on another queue and only keeps watch, as any worker of an installation does. After A woke,
    its older attempt waits before its commit until A holds the job again under a newer token; and A's event
    loop waits until that commit is answered, so that both leases of the one worker are there at once.
    """
    job = scene.enqueue()
    scene.close(LATE)
    scene.close(LOOP)
    pauses = [PausePoint("commit.sending", LATE, job), PausePoint("claimed", LOOP, job, attempt=2)]
    a = scene.worker(A, pauses=pauses)
    guard = scene.worker(GUARD, queue=f"{scene.queue}.guard")

    _wait_paused(scene, "commit.sending")
    a.send_to_group(signal.SIGSTOP)
    a.wait_stopped()
    scene.see(A, "stalled", "STALLS in its commit: the worker and its pacemaker are stopped (SIGSTOP)")
    scene.see_lease_of(A)
    scene.wait_until(EXPIRED, [job], "the lease of the stalled worker is taken back")

    scene.see(
        A, "woken", "WAKES: the event loop turns again, the older attempt still stands before its commit"
    )
    a.send_to_group(signal.SIGCONT)
    _wait_paused(scene, "claimed")
    scene.see(A, "meets itself", "holds the job again, and its older attempt sends its commit")
    scene.open(LATE)
    wait_for_job(scene, A, "transaction_left", job)
    refused = next((sign for sign in scene.trace.signs if sign.what == "commit_refused"), None)
    if refused is not None:
        scene.see(A, "late commit refused", _words(refused))
    scene.open(LOOP)
    scene.trace.wait_for(lambda sign: _is_done(sign, refused), 30, "the newer attempt commits, or none can")
    if refused is not None:
        scene.trace.wait_for_event(A, "stale_write_blocked")
    scene.stop(a, guard)


def play_through_server(scene: Scene) -> None:
    """The same where a worker's results go to a server: its first one is still on its way when A stalls.

    A's older attempt has returned by then, and its result is not sent yet. After A woke, that result arrives
    while A holds the job again, under a newer token, and works on it.
    """
    job = scene.enqueue()
    scene.close(LATE)
    scene.close("attempt 2")
    a = scene.worker(A, late=LATE)
    guard = scene.worker(GUARD, queue=f"{scene.queue}.guard")

    wait_for_job(scene, A, "result_held", job)
    scene.see(A, "returned", "has done the job, and its result is on its way to the server")
    a.send_to_group(signal.SIGSTOP)
    a.wait_stopped()
    scene.see(A, "stalled", "STALLS with its result on the way: worker and pacemaker are stopped (SIGSTOP)")
    scene.see_lease_of(A)
    scene.wait_until(EXPIRED, [job], "the lease of the stalled worker is taken back")

    scene.see(A, "woken", "WAKES: the event loop turns again, the older result is still on its way")
    a.send_to_group(signal.SIGCONT)
    scene.trace.wait_for(_is_second_attempt, 30, f"{A} works on the job again")
    scene.see(A, "meets itself", "holds the job again, and the result of its older attempt arrives")
    scene.open(LATE)
    refused = wait_for_job(scene, A, "stale_write_blocked", job)
    late = f"has the result of its older attempt refused by the fence ({refused.facts['reason']})"
    scene.see(A, "late commit refused", late)
    scene.open("attempt 2")
    scene.wait_committed(A)
    scene.stop(a, guard)


def _is_second_attempt(sign: TraceSign) -> bool:
    return (sign.who, sign.what, sign.facts.get("attempt")) == (A, "at_barrier", 2)


def _words(refused: TraceSign) -> str:
    return f"has its older attempt refused by the fence ({refused.facts['reason']}); its rows roll back"


def _wait_paused(scene: Scene, point: str) -> None:
    scene.trace.wait_for(
        lambda sign: (sign.who, sign.what, sign.facts.get("point")) == (A, "paused", point),
        30,
        f"{A} pauses at {point}",
    )


def _is_done(sign: TraceSign, refused: TraceSign | None) -> bool:
    """The newer attempt has committed. Where the older one committed, no other follows."""
    return sign.what == "committed" and (refused is None or sign.facts["token"] > refused.facts["token"])
