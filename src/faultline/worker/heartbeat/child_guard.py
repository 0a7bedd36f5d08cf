"""Ends the child processes of a worker whose own loop cannot: a thread of the pacemaker.

The worker's deadline monitor stops a job that lost its lease, could not renew it or ran into its timeout.
While a handler blocks the loop, or the worker is stopped, nothing of it turns, and its children would go on
beside their successors.
"""

import contextlib
import os
import signal
import threading
import time

from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.heartbeat.liveness import PROC, stat_of

LOOKS_A_LEASE = 12
LOOK_EVERY_MIN = 0.02
LOOK_EVERY_MAX = 0.5

STILL_LOOKS = 2
"""Looks in a row without a tick after which the loop is taken for blocked.

One says nothing: all of us may have been frozen, and woken together.
"""

STILL_SECONDS = 0.5
"""The same where there is no hurry: a loop that is only late stops its handlers gently."""


class ChildGuard:
    """Looks at the worker's ticks, and at its children only while there are none."""

    def __init__(self, lease_table: LeaseTable, lease: float, worker: int) -> None:
        self.lease_table = lease_table
        self.lease = lease
        self.worker = worker
        self._ticks = lease_table.ticks()
        self._still = 0
        self._still_since = time.monotonic()

    def start(self) -> None:
        """Look for as long as this process lives; not between beats, which may wait for a dead server."""
        threading.Thread(target=self._run, name="faultline-guardian", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(self.look_every())
            self.look()

    def look_every(self) -> float:
        shortest = min(self.lease_table.shortest() or self.lease, self.lease)
        return min(max(shortest / LOOKS_A_LEASE, LOOK_EVERY_MIN), LOOK_EVERY_MAX)

    def look(self) -> None:
        """End the children that have to end, if the loop does not turn."""
        ticks, now = self.lease_table.ticks(), time.monotonic()
        if ticks != self._ticks:
            self._ticks, self._still, self._still_since = ticks, 0, now
            return
        self._still += 1
        if self._still < STILL_LOOKS:
            return
        for slot, generation, lease in self.lease_table.held():
            child = self.lease_table.child(slot, generation)
            if child is None or self.lease_table.ended_for(slot, generation) is not None:
                continue
            safe_until = lease.runs_out_at
            if answer := self.lease_table.answer(slot, generation):
                if answer.word in ("lost", "cancel"):
                    if now - self._still_since >= STILL_SECONDS:
                        self._end(slot, generation, child.pid, answer.word)
                    continue
                safe_until = max(safe_until, answer.safe_until)
            # As the deadline monitor counts, and a look earlier: the next one would come too late.
            if now + self.look_every() >= safe_until - lease.lease_for * 0.1:
                self._end(slot, generation, child.pid, "not_renewed")
            elif now >= child.ends_at:
                self._end(slot, generation, child.pid, "timeout")

    def _end(self, slot: int, generation: int, pid: int, why: str) -> None:
        """The reason first: the worker must not take it for a crash of the job."""
        self.lease_table.end_child(slot, generation, why)
        end_group(pid, self.worker)


def end_group(pid: int, parent: int) -> None:
    """Kill a process group, if it is the one that this parent started.

    The parent has not waited for its leader while its loop is blocked, so the number is still taken. Where
    the system has them, a descriptor holds on to the process between the look and the kill.
    """
    with contextlib.suppress(OSError):
        held = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        try:
            if _is_group_of(pid, parent):
                if held is not None:
                    signal.pidfd_send_signal(held, signal.SIGKILL)
                os.killpg(pid, signal.SIGKILL)
        finally:
            if held is not None:
                os.close(held)


def _is_group_of(pid: int, parent: int) -> bool:
    if not PROC.joinpath("self/stat").exists():
        return os.getpgid(pid) == pid
    fields = stat_of(pid)
    return fields is not None and fields[1:3] == [str(parent), str(pid)]
