"""The lease table: what a worker holds, in memory that its pacemaker shares.

The worker writes a lease on it before any handler runs, so a handler that then holds the interpreter's lock
for minutes cannot keep the pacemaker from beating for it. The pacemaker writes back what became of each beat.
No message can be late, no pipe can fill up: what stands in the table is what is true now.

Each slot has two halves, one writer each. A half read while it is written can only name a lease that does not
exist: the database answers "lost" for it, and the worker ignores answers whose generation is not its own.
Each writer clears the generation first and writes it last, so a half written one has none.

For a job in a child process the slot names that process, too. A worker whose loop is blocked cannot end it;
the pacemaker can, and writes down why.
"""

import mmap
import os
import struct
import tempfile
import time
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple
from uuid import UUID

from faultline.lease import Lease

HEADER: Final = struct.Struct("<Qd")  # tick, shortest lease in seconds
TURNS: Final = struct.Struct("<Q")  # the pacemaker's, behind the worker's
BEATS: Final = struct.Struct(
    "<QQQd"
)  # behind those: leases renewed, calls, failed calls, when the last succeeded
TICKED_AT: Final = struct.Struct("<d")  # behind all of them: when the worker last ticked
TICKED_AT_PLACE: Final = HEADER.size + TURNS.size + BEATS.size
HEADER_BYTES: Final = 64
HELD: Final = struct.Struct("<qq16sddQ")  # job, token, claim, lease in seconds, taken at, generation
GENERATION: Final = struct.Struct("<Q")
GENERATION_AT: Final = HELD.size - GENERATION.size
ANSWER: Final = struct.Struct("<Qdq")  # generation, safe until, word
SPOKEN: Final = struct.Struct("<dq")  # the same without its generation
CHILD: Final = struct.Struct("<Qqd")  # generation, process id, the job's timeout
ENDED: Final = struct.Struct("<Qq")  # generation, why its process was ended
CHILD_AT: Final = HELD.size + ANSWER.size
ENDED_AT: Final = CHILD_AT + CHILD.size
SLOT_BYTES: Final = ENDED_AT + ENDED.size

WORDS: Final = ("", "held", "busy", "lost", "cancel", "not_renewed", "timeout")


class HeartbeatReply(NamedTuple):
    """What the pacemaker knows of a lease: until when it is surely ours, and the last word on it."""

    safe_until: float
    word: str


class ChildRecord(NamedTuple):
    """The process that runs the job of a slot, and the monotonic moment at which it has to end."""

    pid: int
    ends_at: float


class HeartbeatCounts(NamedTuple):
    """What a pacemaker has done: leases renewed, calls, failed calls, and when the last succeeded."""

    renewed: int
    calls: int
    in_vain: int
    well_at: float


def _memory() -> BinaryIO:
    """A file without a name, in memory where the system has such files: a full disk ends nothing then."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("faultline-lease-table"), "w+b", buffering=0)
    return tempfile.TemporaryFile(prefix="faultline-lease-table-")


class LeaseTable:
    """A fixed number of slots in a shared file; both sides map it."""

    def __init__(self, file: BinaryIO, slots: int) -> None:
        self.file = file
        self.slots = slots
        self._map = mmap.mmap(file.fileno(), HEADER_BYTES + slots * SLOT_BYTES)
        self._places = range(HEADER_BYTES, HEADER_BYTES + slots * SLOT_BYTES, SLOT_BYTES)
        """Where the slots begin, by which they are named: worked out once, not three times a job."""
        self._free = [*reversed(self._places)]
        self._generation = 0

    @classmethod
    def make(cls, slots: int) -> "LeaseTable":
        file = _memory()
        file.truncate(HEADER_BYTES + slots * SLOT_BYTES)
        return cls(file, slots)

    @classmethod
    def open(cls, fd: int, slots: int) -> "LeaseTable":
        return cls(os.fdopen(fd, "r+b", buffering=0), slots)

    # the worker's half

    @property
    def room(self) -> int:
        return len(self._free)

    def write(
        self, job_id: int, token: int, claim: bytes, lease_for: float, taken_at: float
    ) -> tuple[int, int]:
        """Write a lease to the table; answers its slot and generation."""
        slot = self._free.pop()
        self._generation = generation = self._generation + 1
        HELD.pack_into(self._map, slot, job_id, token, claim, lease_for, taken_at, generation)
        return slot, generation

    def wipe(self, *slots: int) -> None:
        """Remove leases from the table."""
        wipe, lease_table = GENERATION.pack_into, self._map
        for slot in slots:
            wipe(lease_table, slot + GENERATION_AT, 0)
        self._free.extend(slots)

    def answer(self, slot: int, generation: int) -> HeartbeatReply | None:
        """What the pacemaker said of this lease, if it has spoken yet."""
        spoken_of, safe_until, word = ANSWER.unpack_from(self._map, slot + HELD.size)
        return HeartbeatReply(safe_until, WORDS[word]) if spoken_of == generation else None

    def name_child(self, slot: int, generation: int, pid: int, ends_at: float) -> None:
        """The job of this slot is given to a process, which leads a group of its own."""
        CHILD.pack_into(self._map, slot + CHILD_AT, generation, pid, ends_at)

    def forget_child(self, slot: int) -> None:
        """That process has nothing to do with the job any more."""
        GENERATION.pack_into(self._map, slot + CHILD_AT, 0)

    def ended_for(self, slot: int, generation: int) -> str | None:
        """Why the pacemaker has ended the process of this job; None when it has not."""
        ended, word = ENDED.unpack_from(self._map, slot + ENDED_AT)
        return WORDS[word] if ended == generation else None

    def tick(self, shortest: float) -> None:
        """Show that this worker's loop turns, and its shortest lease."""
        tick, _ = HEADER.unpack_from(self._map, 0)
        HEADER.pack_into(self._map, 0, tick + 1, shortest)
        TICKED_AT.pack_into(self._map, TICKED_AT_PLACE, time.monotonic())

    def ticked_at(self) -> float:
        """When the loop last showed that it turns; 0 as long as it has not begun."""
        return float(TICKED_AT.unpack_from(self._map, TICKED_AT_PLACE)[0])

    def shorten(self, shortest: float) -> bool:
        """Show that a shorter lease came in than any before it; True if it is one."""
        tick, known = HEADER.unpack_from(self._map, 0)
        if known <= shortest and known > 0:
            return False
        HEADER.pack_into(self._map, 0, tick, shortest)
        return True

    def turns(self) -> int:
        """How often the pacemaker has turned its loop: 0 as long as it is not there yet."""
        return int(TURNS.unpack_from(self._map, HEADER.size)[0])

    def beats(self) -> "HeartbeatCounts":
        """What the pacemakers of this table have done so far, all of them together."""
        return HeartbeatCounts._make(BEATS.unpack_from(self._map, HEADER.size + TURNS.size))

    # the pacemaker's half

    def count_beat(self, renewed: int, at: float | None) -> None:
        """Record one call: how many leases it renewed, and when; None when it failed."""
        told = self.beats()
        BEATS.pack_into(
            self._map, HEADER.size + TURNS.size, told.renewed + renewed, told.calls + 1,
            told.in_vain + (at is None), told.well_at if at is None else at,
        )  # fmt: skip

    def turn(self) -> None:
        """Show that the pacemaker is there, and turns."""
        TURNS.pack_into(self._map, HEADER.size, self.turns() + 1)

    def ticks(self) -> int:
        return int(HEADER.unpack_from(self._map, 0)[0])

    def shortest(self) -> float:
        return float(HEADER.unpack_from(self._map, 0)[1])

    def held(self) -> Iterator[tuple[int, int, Lease]]:
        """Every lease in the table, with its slot and generation."""
        for slot in self._places:
            # First the generation, then the rest: what is read then is never older than its generation.
            (generation,) = GENERATION.unpack_from(self._map, slot + GENERATION_AT)
            if generation:
                job_id, token, claim, lease_for, taken_at, _ = HELD.unpack_from(self._map, slot)
                yield slot, generation, Lease(job_id, token, UUID(bytes=claim), lease_for, taken_at)

    def set_reply(self, slot: int, generation: int, safe_until: float, word: str) -> None:
        """Write down what became of a beat."""
        at = slot + HELD.size
        GENERATION.pack_into(self._map, at, 0)
        SPOKEN.pack_into(self._map, at + GENERATION.size, safe_until, WORDS.index(word))
        GENERATION.pack_into(self._map, at, generation)

    def child(self, slot: int, generation: int) -> ChildRecord | None:
        """The process of this job; None when it runs in the worker itself."""
        given, pid, ends_at = CHILD.unpack_from(self._map, slot + CHILD_AT)
        return ChildRecord(pid, ends_at) if given == generation else None

    def end_child(self, slot: int, generation: int, why: str) -> None:
        """Write down why the process of this job is ended, before it is."""
        ENDED.pack_into(self._map, slot + ENDED_AT, generation, WORDS.index(why))

    def close(self) -> None:
        self._map.close()
        self.file.close()
