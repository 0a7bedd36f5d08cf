"""The primary dies and a standby takes its place: one that has everything, and one that has fallen behind.

Both share one history. The synchronous standby has every commit that was answered. The other was cut off, so
a claim and a commit are lost there. A commit under a lease of that lost past must be refused.
"""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.embedded import EmbeddedServer
from faultline.errors import LeaseLost
from faultline.lab.drills.processes.worker_processes import DrillProcess
from faultline.lab.drills.scenarios.lease_race import A, B
from faultline.lab.drills.stage import barriers, commit_replies
from faultline.lab.drills.stage.pauses import PausePoint
from faultline.lab.drills.stage.scene import AMOUNT, Scene, World, wait_for_job
from faultline.lab.drills.stage.standby import StandbyServer, a_standby_of
from faultline.lab.drills.view.trace import DRILL, TraceSign
from faultline.lab.drills.workloads import EFFECT
from faultline.lease import Lease
from faultline.store import calls
from faultline.store.driver.connect import connect
from faultline.store.pool import Store

C, SERVER = "C", "server"
KEEPS_UP, FALLS_BEHIND = "keeps_up", "falls_behind"
LATE_COMMIT = "the late commit"
OLD_LEASE_REFUSED = "old lease refused"
IS_HERE = "select worker.id from faultline.list_workers() as worker where worker.name = %s"
NO_CLAIM = UUID(int=0)
LEASE_OF = "select token, claim from faultline.ledger where job_id = %s and token = %s"
DONE = "select from faultline.get_job(%s) as job where job.state = 'succeeded'"


@dataclass
class History:
    """What happened before the two worlds part: it is written down in both at the end."""

    lost: int
    late: int
    moments: list[tuple[datetime, int, str, str, str]] = field(default_factory=list)

    def see(self, trace: Any, job: int, who: str, what: str, note: str) -> None:
        self.moments.append((datetime.now(UTC), job, who, what, note))
        trace.tell(TraceSign(DRILL, what, {"worker": who, "job_id": job}))

    def write_down(self, conn: psycopg.Connection[Any]) -> None:
        with conn.cursor() as cursor:
            cursor.executemany(
                "insert into sightings (at, job_id, who, what, note) values (%s, %s, %s, %s, %s)",
                self.moments,
            )


def play(scene: Scene) -> None:
    """One history up to the death of the primary, then both worlds, each with a worker of its own."""
    primary = scene.stage.server
    assert primary is not None, "the registry says that this drill needs a server of its own"
    scene.enter(_brought_back(primary))
    # One after the other, in this thread: a standby ends with the thread that started it.
    ahead, behind = (scene.enter(a_standby_of(primary, name)) for name in (KEEPS_UP, FALLS_BEHIND))
    history, a = _work_and_freeze(scene, primary, behind)
    for job in scene.jobs:
        history.see(scene.trace, job, SERVER, "halted", "DIES: the primary is gone, and nothing more is sent")
    primary.halt("immediate")
    with ThreadPoolExecutor(2) as both:
        list(both.map(StandbyServer.promote, (ahead, behind)))
    for job in scene.jobs:
        history.see(scene.trace, job, SERVER, "promoted", "is the standby from here on, on a new timeline")

    kept, lossy = (scene.enter(_connected(_dsn(scene, standby))) for standby in (ahead, behind))
    Store.run_in(lossy, calls.resume(scene.queue))  # that world has not heard that the queue was resumed
    barriers.close(lossy, f"half of job {history.late}")
    c = scene.worker(C, dsn=_dsn(scene, ahead))
    b = scene.worker(B, dsn=_dsn(scene, behind))
    _wake_in_the_lossy_world(scene, history, lossy, a)
    scene.wait_until(DONE, [history.late], "the late job is done on the synchronous standby", conn=kept)
    _present_the_old_lease(scene, history, kept, lossy)
    barriers.open(lossy, f"half of job {history.late}")
    scene.wait_until(DONE, [history.late], "the late job is done where A's claim was lost", conn=lossy)
    scene.stop(a, b, c)
    _note_what_was_lost(scene, history, kept, lossy)
    history.write_down(kept)
    history.write_down(lossy)
    titles = {
        history.late: "a job that was held when the primary died",
        history.lost: "a job that was done just before",
    }
    scene.worlds = [
        World("synchronous standby", kept, "failover_synchronous", titles),
        World("standby that had fallen behind", lossy, "failover_lossy", titles),
    ]


def _work_and_freeze(
    scene: Scene, primary: EmbeddedServer, behind: StandbyServer
) -> tuple[History, DrillProcess]:
    """A commits one job and is stopped before the commit of another; one standby receives neither."""
    queue = scene.queue
    Store.run_in(scene.conn, calls.pause(queue))
    history = History(lost=scene.enqueue(), late=scene.enqueue())
    scene.about = {"lost": history.lost, "late": history.late, "old_token": 0}
    scene.close(LATE_COMMIT)
    a = scene.worker(
        A, dsn=_either(scene, behind), pauses=[PausePoint("commit.sending", LATE_COMMIT, history.late)]
    )
    scene.wait_until(IS_HERE, [A], "worker A is there")
    commit_replies.answer_with(scene.conn, primary.dsn(), KEEPS_UP)
    behind.catch_up(primary.dsn())
    behind.cut_off()
    for job in scene.jobs:
        history.see(
            scene.trace, job, SERVER, "cut off", "has a standby that hears no more of it from here on"
        )
    Store.run_in(scene.conn, calls.resume(queue))
    Store.run_in(scene.conn, calls.wake(queue))
    held = wait_for_job(scene, A, "paused", history.late)
    wait_for_job(scene, A, "transaction_left", history.lost)
    a.send_to_group(signal.SIGSTOP)
    a.wait_stopped()
    history.see(
        scene.trace,
        history.late,
        A,
        "frozen",
        "is FROZEN (SIGSTOP) before its commit, and so is its pacemaker",
    )
    commit_replies.forget_standbys(scene.conn)
    scene.about["old_token"] = held.facts["token"]
    return history, a


def _wake_in_the_lossy_world(
    scene: Scene, history: History, lossy: psycopg.Connection[Any], a: DrillProcess
) -> None:
    """B holds the job under a token of the new timeline when A wakes with one that is unknown there.

    A's commit finds its connection broken, so A asks the rows of the promoted standby first of all.
    """
    wait_for_job(scene, B, "half_written", history.late)
    wait_for_job(scene, B, "transaction_left", history.lost)
    _see_in(lossy, history.late, A, "continued", "WAKES, and finds its commit cut off; it asks the rows")
    a.send_to_group(signal.SIGCONT)
    wait_for_job(scene, A, "transaction_left", history.late)


def _present_the_old_lease(
    scene: Scene, history: History, kept: psycopg.Connection[Any], lossy: psycopg.Connection[Any]
) -> None:
    """Commit A's work under A's own lease, as if its commit had reached the promoted standby.

    The claim id is in no view: this reads the ledger of the other world, as only its owner may.
    """
    token, claim = kept.execute(LEASE_OF, [history.late, scene.about["old_token"]]).fetchone() or (
        0,
        NO_CLAIM,
    )
    lease = Lease(history.late, token, claim, scene.lease.total_seconds(), 0.0)
    try:
        with lossy.transaction():
            for wrote in (f"debit {AMOUNT}", f"credit {AMOUNT}"):
                lossy.execute(EFFECT, [lease.job_id, lease.token, A, wrote])
            Store.run_in(lossy, calls.complete(lease, "null"))
    except LeaseLost:
        # That world never gave the lease and has no record of it: the drill itself is the witness.
        reason, current_token = Store.run_in(lossy, calls.refused(lease))
        note = f"is REFUSED: token {token} of the lost past ({reason}); the job's token is {current_token}"
        _see_in(lossy, history.late, A, OLD_LEASE_REFUSED, note)


def _note_what_was_lost(
    scene: Scene, history: History, kept: psycopg.Connection[Any], lossy: psycopg.Connection[Any]
) -> None:
    """A commit that was answered and stands in one world only."""
    written = "select from effects where job_id = %s and worker = %s"
    there, here = (conn.execute(written, [history.lost, A]).rowcount for conn in (kept, lossy))
    if there and not here:
        note = (
            "has no commit of A for this job: it went with the primary, its effects and its success together"
        )
        _see_in(lossy, history.lost, SERVER, "lost commit", note)


def _see_in(world: psycopg.Connection[Any], job: int, who: str, what: str, note: str) -> None:
    """Write down what happened in one of the worlds only."""
    world.execute(
        "insert into sightings (job_id, who, what, note) values (%s, %s, %s, %s)", [job, who, what, note]
    )


@contextmanager
def _brought_back(primary: EmbeddedServer) -> Iterator[None]:
    """The stage is cleared up on the primary, in whatever state it is."""
    try:
        yield
    finally:
        primary.halt("immediate")
        primary.resume()


@contextmanager
def _connected(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(dsn) as conn:
        yield conn


def _dsn(scene: Scene, standby: StandbyServer) -> str:
    """The stage, on that standby."""
    there = conninfo_to_dict(standby.dsn())
    return make_conninfo(scene.stage.dsn, host=there["host"], port=there["port"])


def _either(scene: Scene, standby: StandbyServer) -> str:
    """The stage on the one that takes writes, as for a worker that has to survive a failover."""
    here, there = conninfo_to_dict(scene.stage.dsn), conninfo_to_dict(standby.dsn())
    return make_conninfo(
        scene.stage.dsn,
        host=f"{here['host']},{there['host']}",
        port=f"{here['port']},{there['port']}",
        target_session_attrs="read-write",
    )
