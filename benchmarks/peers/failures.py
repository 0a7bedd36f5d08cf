"""What happens when a worker is killed in mid-job, and when a frozen one comes back."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from benchmarks.peers.crew import PeerWorkers
from benchmarks.peers.options import Options
from benchmarks.peers.peer import Peer, admin, query

Row = dict[str, Any]
RECOVERY = "recovery"


class FailureScene:
    """Two idle workers and one slow job: A took it, B looks on."""

    def __init__(
        self, peer: Peer, options: Options, suffix: str, tag: str, profile: str, sleep: float
    ) -> None:
        self.peer = peer
        self.database = peer.fresh(suffix)
        # Small pools: all systems run at once.
        self.crew = PeerWorkers(
            peer, self.database, 2, tag, BENCH_MODE="slow", BENCH_SLEEP=sleep, BENCH_PROFILE=profile,
            BENCH_POOL=5, BENCH_CONCURRENCY=4, BENCH_BATCH=4,
        )  # fmt: skip
        try:
            time.sleep(options.fail_warm)
            peer.call("latency", self.database, 1, 1, BENCH_PROFILE=profile)
            if not wait(lambda: bool(self._starts()), 40, 0.05):
                raise RuntimeError(f"no worker took the job: {self.crew.log(0)}")
        except BaseException:
            self.crew.stop()
            raise
        self.victim = self._starts()[0].group
        self.victim_number = [process.pid for process in self.crew.processes].index(self.victim)

    def _starts(self) -> list[Any]:
        return [line for line in self.crew.lines() if line.what == "start"]

    @property
    def starts(self) -> int:
        return len(self._starts())

    def a_did(self, what: str) -> bool:
        return any(line.what == what and line.group == self.victim for line in self.crew.lines())

    def b_did(self, what: str) -> bool:
        return any(line.what == what and line.group != self.victim for line in self.crew.lines())

    def b_started_at(self) -> float:
        return next(line.at_ns for line in self.crew.lines() if line.group != self.victim) / 1e9

    def relaunch(self) -> None:
        """Where only a process with the dead one's identity recovers its jobs, start that."""
        if self.peer.meta.get("relaunch"):
            self.crew.spawn(self.victim_number)

    def rows(self, what: str = "snapshot") -> Any:
        return self.peer.job_rows(self.database, what)


def wait(condition: Callable[[], bool], seconds: float, every: float = 0.1) -> bool:
    end = time.time() + seconds
    while time.time() < end and not condition():
        time.sleep(every)
    return condition()


def crash(peer: Peer, options: Options, profile: str) -> Row:
    """SIGKILL to the process group of the one that took the job; seconds until the other starts it."""
    suffix = "_d" if profile == "default" else "_r"
    scene = FailureScene(peer, options, suffix, f"crash-{profile}", profile, 60)
    row: Row = {"profile": profile}
    try:
        time.sleep(2)
        row["reruns_before_kill"] = scene.starts - 1
        os.killpg(scene.victim, signal.SIGKILL)
        killed_at = time.time()
        if profile == RECOVERY:
            scene.relaunch()
        row["rerun"] = wait(lambda: scene.b_did("start"), options.crash_wait)
        if row["rerun"]:
            row["rerun_after_s"] = scene.b_started_at() - killed_at
        elif peer.meta["snapshot"]:
            row["rows"] = scene.rows()
    finally:
        scene.crew.stop(1)
    return row


def zombie(peer: Peer, options: Options) -> Row:
    """A is stopped in mid-handler past its lease, B runs the job again and ends it; then A comes back."""
    scene = FailureScene(peer, options, "_r", "zombie", RECOVERY, 6)
    return _zombie(scene, options, let_b=_b_has_ended, wait_for_a=25, settle_seconds=8)


def zombie_mid(peer: Peer, options: Options) -> Row:
    """The same, but A comes back while B is still in its handler."""
    scene = FailureScene(peer, options, "_r", "zombie_mid", RECOVERY, 14)
    # A's handler may never return, where the library stops it: look before B ends, 13 seconds from then.
    return _zombie(scene, options, let_b=lambda scene: time.sleep(1), wait_for_a=9, settle_seconds=2.5)


def _b_has_ended(scene: FailureScene) -> None:
    wait(lambda: scene.b_did("end"), 40)
    time.sleep(4)


def _zombie(
    scene: FailureScene,
    options: Options,
    let_b: Callable[[FailureScene], None],
    wait_for_a: float,
    settle_seconds: float,
) -> Row:
    row: Row = {"profile": RECOVERY}
    try:
        os.killpg(scene.victim, signal.SIGSTOP)
        stopped_at = time.time()
        scene.relaunch()
        row |= _wait_for_b(scene, options, stopped_at, let_b)
        row["b_done_before_cont"] = scene.b_did("end")
        row["rows_before_cont"] = scene.rows()
        row |= _wake_a(scene, wait_for_a, settle_seconds)
        row |= _testimony(scene, stopped_at)
    finally:
        scene.crew.stop(1)
    return row


def _wait_for_b(
    scene: FailureScene, options: Options, stopped_at: float, let_b: Callable[[FailureScene], None]
) -> Row:
    """Until B has taken over; where the only documented way is a manual call, it is made after 8 seconds."""
    by_hand: str = scene.peer.meta.get("manual_recover", "")
    took_over = wait(lambda: scene.b_did("start"), 8 if by_hand else options.crash_wait)
    used = bool(by_hand) and not took_over
    if used:
        with admin(scene.database) as conn:
            query(conn, by_hand)
        took_over = wait(lambda: scene.b_did("start"), options.crash_wait - 8)
    if not took_over:
        return {"manual_recover_used": used}
    after = scene.b_started_at() - stopped_at
    let_b(scene)
    return {"manual_recover_used": used, "rerun_after_s": after}


def _wake_a(scene: FailureScene, wait_for_a: float, settle_seconds: float) -> Row:
    log = scene.crew.log_file(scene.victim_number)
    said_before = log.stat().st_size
    os.killpg(scene.victim, signal.SIGCONT)
    wait(lambda: scene.a_did("end"), wait_for_a)
    time.sleep(settle_seconds)
    row: Row = {
        "b_running_at_snapshot": scene.b_did("start") and not scene.b_did("end"),
        "rows_after_cont": scene.rows(),
    }
    if row["b_running_at_snapshot"]:
        _b_has_ended(scene)
        row["rows_final"] = scene.rows()
    with log.open(errors="replace") as said:
        said.seek(said_before)
        row["a_log_after_cont"] = said.read()[-3000:]
    return row


def _testimony(scene: FailureScene, stopped_at: float) -> Row:
    """What the handlers did, what the library recorded, what B said."""
    with admin(scene.database) as conn:
        effects = conn.execute(
            "select seq, pgid = %s as by_zombie, at::text from bench_effects order by id", [scene.victim]
        ).fetchall()
    lines = scene.crew.lines()
    b_number = next(n for n in reversed(range(len(scene.crew.processes))) if n != scene.victim_number)
    return {
        "effects": effects,
        "refusals": scene.rows("refusals") if scene.peer.meta.get("refusals") else [],
        "a_handler_returned": scene.a_did("end"),
        "b_handler_returned": scene.b_did("end"),
        "events": [
            (round(line.at_ns / 1e9 - stopped_at, 2), line.what, "A" if line.group == scene.victim else "B")
            for line in lines
        ],
        "b_log": "\n".join(scene.crew.log(b_number, 25))[-2500:],
    }
