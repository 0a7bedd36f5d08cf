"""The server stops at once and starts again, under jobs at every stage.

One job has written half of its rows. One is inside its COMMIT, which is not done yet. One has committed, and
its reply is never sent, because the server waits for a standby that does not exist. A client waits for the
reply to an enqueue in the same way. One acknowledged job waits in its queue.
"""

import secrets

from faultline.lab.drills.processes.worker_processes import DrillProcess
from faultline.lab.drills.scenarios.lease_race import A
from faultline.lab.drills.stage import commit_replies
from faultline.lab.drills.stage.pauses import PausePoint
from faultline.lab.drills.stage.scene import AMOUNT, Scene, wait_for_job

CLIENT, SERVER = "C1", "server"
MAY_COMMIT, SUBMIT = "the commit that is not answered", "submit"
IN_COMMIT = "select from pg_stat_activity where query = 'COMMIT' and wait_event_type = 'Lock'"
ALL_DONE = (
    "select from unnest(%s::bigint[]) as asked (id) cross join lateral faultline.get_job(asked.id) as job"
    " where job.state = 'succeeded' having count(*) = %s"
)


def play(scene: Scene) -> None:
    """Bring each job to its stage, stop the server, start it again, and see how each job ends."""
    open_, inside, unheard = (scene.enqueue() for _ in range(3))
    scene.about = {"open_": open_, "inside": inside, "unheard": unheard}
    for barrier in (f"half of job {open_}", f"commit of job {inside}", MAY_COMMIT, SUBMIT):
        scene.close(barrier)
    a = scene.worker(A, jobs_max=3, pauses=[PausePoint("commit.sending", MAY_COMMIT, unheard)])
    order = {"key": f"order-{secrets.token_hex(4)}", "amounts": [AMOUNT], "threads": 1, "times": 1}
    client = scene.client(CLIENT, **order, gate=SUBMIT)
    for what, job in (("half_written", open_), ("at_barrier", inside), ("paused", unheard)):
        wait_for_job(scene, A, what, job)
    scene.wait_until(IN_COMMIT, [], f"job {inside} is in its commit")
    waiting = scene.enqueue()
    scene.chapters = {
        unheard: "it had committed, and its reply was never sent",
        inside: "it was in its COMMIT, which was not done",
        open_: "half of its rows were written",
        waiting: "it was acknowledged, and in its queue",
    }

    commit_replies.hold_all_replies(scene.conn, scene.stage.dsn)
    commit_replies.forget_standbys(scene.conn)
    scene.open(MAY_COMMIT)
    scene.open(SUBMIT)
    scene.wait_until(
        commit_replies.UNANSWERED, ["^commit$"], f"the commit of job {unheard} stands, unanswered"
    )
    scene.wait_until(commit_replies.UNANSWERED, ["enqueue"], "the enqueue of the client stands, unanswered")
    scene.see(A, "commit unanswered", "has COMMITTED, and waits for an answer that never comes", job=unheard)
    scene.see(A, "commit unfinished", "has sent its COMMIT, and it is not done yet", job=inside)
    _restart(scene)
    _ask_again(scene, client, order)
    scene.wait_until(ALL_DONE, [scene.jobs, len(scene.jobs)], "every job has succeeded")
    scene.stop(a)
    scene.job = unheard


def _restart(scene: Scene) -> None:
    server = scene.stage.server
    assert server is not None, "the registry says that this drill needs a server of its own"
    for job in scene.jobs:
        scene.see(SERVER, "halted", "STOPS at once (immediate): every session is cut off", job=job)
    server.halt("immediate")
    server.resume()
    scene.connect()
    for job in scene.jobs:
        scene.see(SERVER, "resumed", "is back, after its crash recovery", job=job)


def _ask_again(scene: Scene, client: DrillProcess, order: dict[str, object]) -> None:
    """The enqueue was committed and not answered; repeated under its key it gives the same job.

    The client itself repeats it once, because a key makes that harmless. Then the client is started again.
    """
    client.wait_exit()
    client.wait_gone()
    again = scene.client(CLIENT, **order)
    again.wait_exit()
    again.wait_gone()
    said = [sign.facts for sign in scene.trace.signs if (sign.who, sign.what) == (CLIENT, "submitted")]
    job = said[-1]["named"] or 0
    scene.jobs.append(job)
    scene.see(CLIENT, "enqueue unanswered", "repeats what was not answered, and is named this job", job=job)
