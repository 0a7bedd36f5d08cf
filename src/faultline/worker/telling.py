"""Tells whoever counts how a worker stands, twice a second; while nobody does, it only looks whether."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from faultline.store import calls
from faultline.store.call import Call
from faultline.telemetry.events import counted, tell
from faultline.worker.block import Lender
from faultline.worker.companion import Companion
from faultline.worker.doors import Carrier
from faultline.worker.outage import Outage
from faultline.worker.shelf import Shelf

log = logging.getLogger("faultline.worker")

TELL_EVERY: Final = 0.5

QUESTION_SECONDS_MAX: Final = 5.0


Ask = Callable[[list[calls.Named]], Call[list[float]]]


class Telling:
    """Gathers what the parts of a worker know; decides nothing, and its failure stops nobody."""

    def __init__(
        self, shelf: Shelf, line: Carrier, outage: Outage, companion: Companion, lender: Lender, worker: int
    ) -> None:
        self.shelf = shelf
        self.line = line
        self.outage = outage
        self.companion = companion
        self.lender = lender
        self.worker = worker

    async def run(self) -> None:
        """Tell until cancelled."""
        while True:
            await asyncio.sleep(TELL_EVERY)
            if not counted():
                continue
            try:
                self.tell_now()
                await self._ask("recovered", self.shelf.figures.crashed, calls.recoveries)
                await self._ask("zombie_refused", self.shelf.figures.zombies, calls.zombies)
            except Exception as trouble:  # an outage, a server that has not this function: figures can wait
                log.debug("figures could not be told now: %s", trouble)

    def tell_now(self) -> None:
        """What has ended since the last time, and how the worker stands."""
        shelf = self.shelf
        shelf.figures.flush()
        beats, now = shelf.board.beats(), time.monotonic()
        tell(
            "worker_state", worker=self.worker,
            running=len(shelf.running), buffered=len(shelf.buffer), in_hand=shelf.in_hand,
            stuck=len(shelf.abandoned), slots=shelf.config.jobs_max, listening=shelf.listening,
            outage_seconds=0.0 if self.outage.since is None else now - self.outage.since,
            renewed=beats.renewed, beats=beats.calls, beats_in_vain=beats.in_vain,
            beat_age=now - beats.well_at if beats.well_at else 0.0,
            pacemakers_replaced=self.companion.replaced,
            connections={"threads": self.lender.store.in_use(), "loop": self.lender.astore.in_use()},
        )  # fmt: skip

    async def _ask(self, name: str, leases: deque[calls.Named], ask: Ask) -> None:
        """Ask the rows about leases of which only they know the rest; one call for all of them."""
        if not leases:
            return
        asked = list(leases)
        leases.clear()
        async with asyncio.timeout(QUESTION_SECONDS_MAX):
            for seconds in await self.line.run(ask(asked)):
                tell(name, seconds=seconds)
