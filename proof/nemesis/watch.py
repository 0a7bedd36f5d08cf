"""Watch a run while it goes on: how much gets done, what has ended, and whether anything is broken yet."""

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from faultline.audit import Effects, examine
from proof.nemesis.app import COMMITTING
from proof.nemesis.arena import Arena
from proof.nemesis.ground import NemesisDatabase

SAMPLE_EVERY_SECONDS: Final = 0.5
LOOK_EVERY_SECONDS: Final = 8.0

COUNTED: Final = """
select count(*) filter (where outcome = 'succeeded'), count(*) filter (where outcome = 'expired'),
       count(*) filter (where outcome in ('failed', 'dead')),
       count(*) filter (where outcome in ('snoozed', 'released')),
       (select coalesce(sum(times), 0)::bigint from faultline.refusals)
from faultline.ledger
"""
WAITING: Final = "select (select count(*) from faultline.active) + (select count(*) from faultline.later)"
ENDED: Final = """
select job_id, outcome::text from faultline.ledger where slot = 0
union all select id, 'dead' from faultline.dead
"""


EFFECTS: Final = Effects("storm.effects", COMMITTING)
"""The user's table, and the tasks whose every success leaves a row in it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The counts at one moment; only the moment while the server was away."""

    at: float
    succeeded: int | None = None
    reaped: int | None = None
    failed: int | None = None
    given_back: int | None = None
    refused: int | None = None
    waiting: int | None = None


@dataclass(eq=False)
class NemesisSampler:
    """Samples twice a second, audits every few seconds, remembers every end it has seen."""

    arena: Arena
    ground: NemesisDatabase
    began: float
    samples: list[Sample] = field(default_factory=list)
    ends: dict[int, str] = field(default_factory=dict)
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    looks: int = 0
    first_broken: str = ""
    _conn: psycopg.Connection[Any] | None = None

    async def sample(self) -> None:
        while True:
            self.samples.append(await asyncio.to_thread(self._sample))
            await asyncio.sleep(SAMPLE_EVERY_SECONDS)

    async def look(self) -> None:
        """Audit during the storm; a breach now does not heal later."""
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            with contextlib.suppress(psycopg.Error):
                await asyncio.to_thread(self._look)

    def _sample(self) -> Sample:
        at = time.monotonic() - self.began
        try:
            if self._conn is None:
                self._conn = self.ground.connect(options="-c statement_timeout=900 -c lock_timeout=100")
            counted = self._conn.execute(COUNTED).fetchone() or (0,) * 5
        except psycopg.Error:
            if self._conn is not None:
                self._conn.close()
            self._conn = None
            return Sample(at)
        waiting = None
        with contextlib.suppress(psycopg.Error):
            waiting = (self._conn.execute(WAITING).fetchone() or (None,))[0]
        succeeded, reaped, failed, given_back, refused = (int(count) for count in counted)
        return Sample(at, succeeded, reaped, failed, given_back, refused, waiting)

    def _look(self) -> None:
        acknowledged = [note["job"] for note in self.arena.read_notes() if note["said"] == "ok"]
        with self.ground.connect() as conn:
            report = examine(conn, effects=EFFECTS, acknowledged=acknowledged)
            ended = dict(conn.execute(ENDED).fetchall())
        self.looks += 1
        for job, outcome in self.ends.items():
            if ended.get(job) != outcome and not self.first_broken:
                self.first_broken = f"TerminalStays: job {job} was {outcome}, and is {ended.get(job)}"
        self.ends.update(ended)
        for verdict in report.verdicts:
            if not verdict.holds and not self.first_broken:
                at = time.monotonic() - self.began
                self.first_broken = f"{verdict.name} at {at:.0f} s: {verdict.examples[0]}"
        if self.first_broken:
            self.broken.set()

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()
