"""Reports the state of a worker for its metrics, twice a second, while there is a listener."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from faultline.telemetry.events import has_listeners, record_metric
from faultline.worker.backend import Backend, LeaseName
from faultline.worker.heartbeat.pacemaker_process import PacemakerProcess
from faultline.worker.outage import Outage
from faultline.worker.state import WorkerState
from faultline.worker.transactions.transaction_base import TransactionPools

log = logging.getLogger("faultline.worker")

TELL_EVERY: Final = 0.5

QUESTION_SECONDS_MAX: Final = 5.0


Ask = Callable[[Sequence[LeaseName]], Awaitable[list[float]]]


class Reporter:
    """Gathers what the parts of a worker know; decides nothing, and its failure stops no other part."""

    def __init__(
        self,
        state: WorkerState,
        backend: Backend,
        outage: Outage,
        pacemaker_process: PacemakerProcess,
        transaction_pools: TransactionPools,
        worker: int,
    ) -> None:
        self.state = state
        self.backend = backend
        self.outage = outage
        self.pacemaker_process = pacemaker_process
        self.transaction_pools = transaction_pools
        self.worker = worker

    async def run(self) -> None:
        """Tell until cancelled."""
        while True:
            await asyncio.sleep(TELL_EVERY)
            if not has_listeners():
                continue
            try:
                self.tell_now()
                await self._ask("recovered", self.state.figures.crashed, self.backend.recovery_seconds)
                await self._ask("zombie_refused", self.state.figures.zombies, self.backend.zombie_seconds)
            except Exception as trouble:  # an outage, a server that has not this function: figures can wait
                log.debug("figures could not be told now: %s", trouble)

    def tell_now(self) -> None:
        """What has ended since the last time, and how the worker stands."""
        state = self.state
        state.figures.flush()
        beats, now = state.lease_table.beats(), time.monotonic()
        record_metric(
            "worker_state", worker=self.worker,
            running=len(state.running), buffered=len(state.buffer), in_hand=state.held_count,
            stuck=state.stuck, slots=state.config.jobs_max, listening=state.listening,
            outage_seconds=0.0 if self.outage.since is None else now - self.outage.since,
            renewed=beats.renewed, beats=beats.calls, beats_in_vain=beats.in_vain,
            beat_age=now - beats.well_at if beats.well_at else 0.0,
            pacemakers_replaced=self.pacemaker_process.replaced,
            connections={
                "threads": self.transaction_pools.store.in_use(),
                "loop": self.transaction_pools.astore.in_use(),
            },
        )  # fmt: skip

    async def _ask(self, name: str, leases: deque[LeaseName], ask: Ask) -> None:
        """Ask the rows about leases of which only they know the rest; one call for all of them."""
        if not leases:
            return
        asked = list(leases)
        leases.clear()
        async with asyncio.timeout(QUESTION_SECONDS_MAX):
            for seconds in await ask(asked):
                record_metric(name, seconds=seconds)
