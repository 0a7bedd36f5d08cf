"""The storm: plays a schedule of faults over an arena, and notes what came of each."""

import asyncio
import contextlib
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import psycopg

from faultline.errors import FaultlineError
from proof.nemesis.arena import Arena
from proof.nemesis.ground import NemesisDatabase
from proof.nemesis.proxy import Trap


class Missed(Exception):
    """The fault was not possible just then: no process was there, or it was already as bad."""


@dataclass(frozen=True, slots=True)
class Struck:
    """One fault as it came to pass, in seconds from the start of the run."""

    kind: str
    lane: str
    began: float
    ended: float
    remark: str
    missed: bool = False


@dataclass
class Counts:
    """What happened to calls on their way; the client could not know it."""

    replies: Counter[str] = field(default_factory=Counter)
    """Statements that were carried out and whose reply was lost, by statement."""
    workers_commits: int = 0
    """Of these, commits of a handler's own transaction."""
    cut: int = 0

    def lost(self, trap: Trap) -> None:
        if trap.carried_out:
            said = trap.statement.split("(")[0].removeprefix("select * from ").strip()[:60]
            self.replies[said] += 1
            self.workers_commits += trap.line != "producers" and said.upper() == "COMMIT"
        else:
            self.cut += 1

    @property
    def unknown_commits(self) -> int:
        """Commits that were made and not answered, in a transaction or by a call of its own."""
        return sum(count for said, count in self.replies.items() if _commits(said))


def _commits(statement: str) -> bool:
    verbs = ("complete", "complete_many", "enqueue", "enqueue_many", "fail", "fail_many")
    return statement.upper() == "COMMIT" or statement in {f"faultline.{verb}" for verb in verbs}


@dataclass(eq=False)
class Storm:
    """One phase of faults over one arena on one server."""

    # The last: a disk that is written meanwhile cannot be made as small as it was a moment ago.
    TROUBLE: ClassVar = (psycopg.Error, FaultlineError, OSError, subprocess.CalledProcessError)

    arena: Arena
    ground: NemesisDatabase
    began: float = field(default_factory=time.monotonic)
    counts: Counts = field(default_factory=Counts)
    struck: list[Struck] = field(default_factory=list)
    down: asyncio.Lock = field(default_factory=asyncio.Lock)
    under_way: dict[int, str] = field(default_factory=dict)

    def now(self) -> float:
        return time.monotonic() - self.began

    async def ask(self, question: str, args: Sequence[Any] = ()) -> Any:
        """One value, read past all proxies; an error if the server cannot answer at once."""

        def answer() -> Any:
            with self.ground.connect(options="-c statement_timeout=1000") as conn:
                row = conn.execute(question.encode(), args).fetchone()
                return row[0] if row else None

        return await asyncio.to_thread(answer)

    async def heal(self) -> None:
        """Undo whatever may still be broken: every line, the disk, the clock."""
        for link in self.arena.links.values():
            link.heal()
        if self.ground.disk is not None:
            await asyncio.to_thread(self.ground.fill_disk, False)
        await self._set_clock()

    async def _set_clock(self) -> None:
        for _ in range(50):
            with contextlib.suppress(*self.TROUBLE):
                await asyncio.to_thread(self.ground.step_clock, timedelta(0))
                return
            await asyncio.sleep(0.2)
