"""Looks whether the pacemaker's beats go through while claims do; if not, says why and claims no more."""

import asyncio
import time
from typing import Final

from faultline.store.session import OUTAGE
from faultline.worker.backend import Backend
from faultline.worker.outage import Outage
from faultline.worker.state import WorkerState

LOOK_EVERY: Final = 0.25

WHY: Final = "beats"


class HeartbeatWatch:
    """A worker that cannot renew a lease stops the handler; it must not take the next one at once.

    The pacemaker is a process of its own that logs nothing, so what is in its way is asked here: by a beat
    about no lease at all.
    """

    def __init__(self, state: WorkerState, backend: Backend, outage: Outage) -> None:
        self.state = state
        self.backend = backend
        self.outage = outage
        self._lease = state.config.lease_for
        self._seen = state.lease_table.beats()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(min(LOOK_EVERY, self._lease.total_seconds() / 6))
            before, now = self._seen, self.state.lease_table.beats()
            self._seen = now
            if now.well_at != before.well_at:
                self.state.hold_back_no_more(WHY)
            elif now.in_vain != before.in_vain:
                await self._ask(now.well_at)

    async def _ask(self, well_at: float) -> None:
        seconds = self._lease.total_seconds()
        try:
            async with asyncio.timeout(max(1.0, seconds / 3)):
                await self.backend.heartbeat([])
        except Exception as trouble:
            is_outage = isinstance(trouble, (*OUTAGE, TimeoutError))
            if is_outage and (self.outage.since is not None or time.monotonic() - well_at < seconds):
                return  # claims meet it too, or it has not lasted long
            self.outage.met(trouble)
            self.state.hold_back(WHY)
