"""Which priority each lane has: asked once for each, since no lane ever changes its own."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import psycopg

from faultline.errors import FaultlineError
from faultline.store import calls
from faultline.store.call import Row
from faultline.store.rows import Claimed
from faultline.store.run import AsyncStore

LANES_MAX: Final = 10_000
ID: Final = Claimed._fields.index("id")
LANE: Final = Claimed._fields.index("lane")


class Lanes:
    """The priorities of lanes that jobs were given out from.

    A claim does not tell it, and must not become slower for those who do not ask.
    """

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._known: dict[int, int] = {}

    async def of(self, rows: Sequence[Row]) -> Mapping[int, int]:
        """Priorities by lane; without those that cannot be told now: the jobs are claimed, and go out."""
        strange = {row[LANE]: row[ID] for row in rows if row[LANE] not in self._known}
        if strange:
            await self._ask(strange)
        return self._known

    async def _ask(self, strange: Mapping[int, int]) -> None:
        if len(self._known) + len(strange) > LANES_MAX:
            self._known.clear()
        with suppress(FaultlineError, psycopg.Error, TimeoutError):
            for lane, job_id in strange.items():
                if (job := await self._store.run(calls.outline(job_id))) is not None:
                    self._known[lane] = job.priority
