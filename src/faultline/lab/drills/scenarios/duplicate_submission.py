"""Many clients submit one key at once, some with other args; one of them is killed, and starts again.

The first client to take the key is killed before it commits, while all the others wait for it. One of those
wins. Its client may be dead by then: it learns of its job when it asks again.
"""

import secrets
import signal
from typing import Any, Final

from faultline.lab.drills.processes.worker_processes import DrillProcess
from faultline.lab.drills.scenarios.lease_race import A
from faultline.lab.drills.stage.scene import AMOUNT, Scene
from faultline.lab.drills.stage.wait_until import wait_until
from faultline.store import calls
from faultline.store.pool import Store

FIRST, SECOND, THIRD = "C1", "C2", "C3"
AFTER: Final = {FIRST: "its restart", SECOND: "the kill", THIRD: "the job's end"}
THREADS, TIMES = 8, 5
SUBMIT, HOLDER = "all submit", "the first commits"
BLOCKED = "select from pg_stat_activity where %s = any(pg_blocking_pids(pid)) having count(*) >= %s"
ENDED = "select from faultline.get_job(%s) as job where job.state = 'succeeded'"


def play(scene: Scene) -> None:
    """Two clients race for a key that one of them holds; that one is killed; then all ask again."""
    key = f"order-{secrets.token_hex(4)}"
    order = {"key": key, "amounts": [AMOUNT, 2 * AMOUNT], "threads": THREADS, "times": TIMES}
    scene.about = {"key": key, "queue": scene.queue, "taken": 0, "asked": THREADS * (2 * TIMES + 1)}
    scene.enqueue()  # an ordinary job first, so that the queue and a worker exist
    a = scene.worker(A)
    scene.close(SUBMIT)
    scene.close(HOLDER)
    first = scene.client(FIRST, **order, gate=SUBMIT, holds=HOLDER)
    second = scene.client(SECOND, **order, gate=SUBMIT)
    scene.wait_committed(A)
    scene.job = 0

    taken = scene.trace.wait_for_event(FIRST, "key_taken").facts
    scene.see(FIRST, "key taken", "takes the key, and has not committed yet")
    scene.open(SUBMIT)
    if _all_wait(scene, taken["backend"]):
        for who in (FIRST, SECOND):
            scene.see(
                who, "waited for the key", f"submits it in {THREADS} sessions at once: all of them wait"
            )
    first.send(signal.SIGKILL)
    first.wait_exit()
    scene.see(FIRST, "killed", "is KILLED (SIGKILL): what it had taken rolls back, what it had sent goes on")
    scene.open(HOLDER)
    _wait_answered(scene, second)
    _wait_answered(scene, scene.client(FIRST, **order))

    job = _named(scene, key)
    scene.wait_until(ENDED, [job], "the job that the key names has succeeded")
    _wait_answered(scene, scene.client(THIRD, **{**order, "times": 1}))
    scene.stop(a)
    _write_down(scene, job, taken["job_id"])


def _all_wait(scene: Scene, backend: int) -> bool:
    """Whether all the others wait for the holder of the key; False once one was answered."""
    return wait_until(
        scene.conn,
        BLOCKED,
        [backend, 2 * THREADS],
        "all the others wait for the holder of the key",
        unless=lambda: any(sign.what == "submitted" for sign in scene.trace.signs),
    )


def _wait_answered(scene: Scene, client: DrillProcess) -> None:
    """Wait until a client has had all its answers, and note the moment."""
    client.wait_exit()
    client.wait_gone()
    scene.see(
        client.who, "has its answers", f"has an answer to each of its submissions, after {AFTER[client.who]}"
    )


def _named(scene: Scene, key: str) -> int:
    """The job that the key names; the first, if there are wrongly several."""
    listed = Store.run_in(scene.conn, calls.list_jobs(None, scene.queue, None, None, 1000))
    return min((job.id for job in listed if job.key == key), default=0)


def _write_down(scene: Scene, job: int, taken: int) -> None:
    """Write the clients' answers to the table that the verdict reads."""
    scene.job, scene.jobs = job, [job]
    scene.about["taken"] = taken
    scene.conn.execute("update sightings set job_id = %s where job_id = 0", [job])
    rows: list[list[Any]] = [
        [
            job,
            *(sign.facts[name] for name in ("worker", "amount", "answer", "named", "times")),
            AFTER[sign.who],
        ]
        for sign in scene.trace.signs
        if sign.what == "submitted"
    ]
    with scene.conn.cursor() as cursor:
        cursor.executemany("insert into submissions values (%s, %s, %s, %s, %s, %s, %s)", rows)
