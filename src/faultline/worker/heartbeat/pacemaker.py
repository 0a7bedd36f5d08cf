"""The pacemaker: a small process beside a worker that runs no handler code and renews its leases.

It goes when its worker goes, and it stops beating for a worker that is stopped (SIGSTOP, a debugger, a frozen
cgroup): a frozen worker must lose its leases. A worker whose loop is blocked is none, and keeps them.
"""

import ctypes
import json
import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

import psycopg

from faultline.errors import FaultlineError
from faultline.failpoints import arm_from_environment, failpoint
from faultline.lease import Lease
from faultline.store import calls
from faultline.store.driver.async_connection import SyncPqConnection
from faultline.store.driver.connect import connect
from faultline.store.pool import Store
from faultline.store.rows import HeartbeatResult
from faultline.store.servers.hosts import look_after
from faultline.worker.heartbeat.child_guard import ChildGuard
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.heartbeat.liveness import ProcessLiveness, asleep

BEATS_A_CALL_MAX = 500

RENEW_AFTER = 0.3
"""The part of a lease after which it is renewed: one beat may go missing, and the next still lands in time.

A little under a third: a beat that is not due yet waits for the next look.
"""

LOOKS_A_LEASE = 6

SEEN_EVERY_MAX = 9.0
"""With nothing in hand: only to be seen, which people do after a default lease."""

SUSPENDED_MIN = 0.1

PR_SET_PDEATHSIG = 1


class HeartbeatSender(Protocol):
    """Sends the heartbeats of a pacemaker; raises errors of Faultline or of the driver."""

    def connect(self) -> None:
        """Connect, unless that is done already."""
        ...

    def beat(
        self, leases: Sequence[Lease], lease: timedelta, worker: int | None
    ) -> list[HeartbeatResult]: ...

    def hang_up(self) -> None: ...


@dataclass
class Pacemaker:
    """Beats for one worker, over one connection of its own."""

    lease_table: LeaseTable
    sender: HeartbeatSender
    lease: float
    worker: int | None
    pulse: ProcessLiveness
    beaten_at: dict[tuple[int, int], float] = field(default_factory=dict)
    seen_at: float = 0.0
    asleep: float = field(default_factory=asleep)

    def run(self) -> None:
        """Beat until the worker closes its end of the pipe, or is gone."""
        self._renew({})  # the connection is made before there is anything to renew
        self.lease_table.turn()
        while self._wait():
            self.lease_table.turn()
            if not self.pulse.alive():
                break
            if self.pulse.beats(self.lease_table.ticks()):
                self._beat()
        self._hang_up()

    def _wait(self) -> bool:
        """Sleep until the next beat; a byte on the pipe wakes us early, its end is ours."""
        shortest = self.lease_table.shortest() or self.lease
        ready, _, _ = select.select([sys.stdin], [], [], min(shortest, self.lease) / LOOKS_A_LEASE)
        return not ready or bool(os.read(sys.stdin.fileno(), 4096))

    def _beat(self) -> None:
        """Renew each lease that is old enough; after trouble, try again at the next turn."""
        now = time.monotonic()
        held = {
            (slot, generation): lease
            for slot, generation, lease in self.lease_table.held()
            if self.lease_table.ended_for(slot, generation) is None  # its process is no more
        }
        self.beaten_at = {at: when for at, when in self.beaten_at.items() if at in held}
        woke = self._woke()
        due = [
            (at, lease)
            for at, lease in held.items()
            if woke or now - self.beaten_at.get(at, lease.taken_at) >= lease.lease_for * RENEW_AFTER
        ]
        if not due and now - self.seen_at >= min(self.lease * 0.6, SEEN_EVERY_MAX):
            self._renew({})  # nothing in hand: only to be seen
        for start in range(0, len(due), BEATS_A_CALL_MAX):
            self._renew(dict(due[start : start + BEATS_A_CALL_MAX]))

    def _woke(self) -> bool:
        """Whether the machine was suspended since the last look: the leases ran on, our clock did not."""
        before, self.asleep = self.asleep, asleep()
        return self.asleep - before > SUSPENDED_MIN

    def _renew(self, due: dict[tuple[int, int], Any]) -> None:
        leases = sorted(due.values())
        places = {(lease.job_id, lease.token): at for at, lease in due.items()}
        sent = time.monotonic()
        try:
            self.sender.connect()
            if due:  # not the first word of all, which only says that it is there
                failpoint("beat.sending")
            beats = self.sender.beat(leases, timedelta(seconds=self.lease), self.worker)
            if due:
                failpoint("beat.sent")
        except (FaultlineError, psycopg.Error):
            self.lease_table.count_beat(0, None)
            self._hang_up()
            return
        self.seen_at = sent
        self.lease_table.count_beat(sum(beat.answer == "held" for beat in beats), sent)
        for beat in beats:
            at = places[beat.job_id, beat.token]
            if beat.answer == "held":
                self.beaten_at[at] = sent
                self.lease_table.set_reply(*at, sent + due[at].lease_for, "held")
            elif (
                beat.answer == "busy"
            ):  # its row is locked just now, perhaps by its own commit: ask again soon
                self.lease_table.set_reply(*at, sent + due[at].lease_for, "busy")
            else:
                self.beaten_at[at] = sent
                self.lease_table.set_reply(*at, 0.0, beat.answer)

    def _hang_up(self) -> None:
        self.sender.hang_up()


class PostgresHeartbeatSender:
    """Beats to the database itself."""

    def __init__(self, dsn: str, lease: float) -> None:
        self._dsn = dsn
        self._lease = lease
        self._conn: SyncPqConnection | None = None

    def connect(self) -> None:
        """A connection that gives up in time for another to save the leases."""
        if self._conn is not None and self._conn.is_stale:
            self.hang_up()
        if self._conn is not None:
            return
        third = self._lease / 3
        self._conn = connect(
            self._dsn,
            prepare_threshold=None,
            look_after=look_after(self._lease),
            connect_timeout=max(2, math.ceil(third)),
            tcp_user_timeout=max(500, int(third * 1000)),
        )

    def beat(self, leases: Sequence[Lease], lease: timedelta, worker: int | None) -> list[HeartbeatResult]:
        assert self._conn is not None
        return Store.run_in(self._conn, calls.heartbeat(leases, lease, worker))

    def hang_up(self) -> None:
        if self._conn is not None:
            self._conn.close()
        self._conn = None


def main(speak: Callable[[dict[str, Any]], HeartbeatSender]) -> None:
    """`python -m MODULE FD SLOTS`, the rest as a line of JSON on standard input, and a sender made of it."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the worker, which still needs its leases to finish
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    go_with_parent()
    arm_from_environment()
    said = json.loads(sys.stdin.readline())
    lease_table = LeaseTable.open(int(sys.argv[1]), int(sys.argv[2]))
    ChildGuard(lease_table, said["lease"], said["parent"]).start()
    Pacemaker(lease_table, speak(said), said["lease"], said["worker"], ProcessLiveness(said["parent"])).run()
    os._exit(0)  # at once: a worker that stops waits for us, and Python would tidy up for a while


def go_with_parent() -> None:
    """Even in the middle of a call that is not answered; other systems must do with the pipe's end."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(lambda said: PostgresHeartbeatSender(said["dsn"], said["lease"]))
