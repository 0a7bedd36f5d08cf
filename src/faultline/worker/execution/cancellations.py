"""Hears that jobs in hand were cancelled, asks whether it is so, and stops their handlers at once."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from faultline.worker.attempt import Attempt, StopReason
from faultline.worker.backend import Backend
from faultline.worker.state import WorkerState

log = logging.getLogger("faultline.worker")

NAMED_MAX: Final = 10_000
"""Jobs we were told of and have not looked at yet; of more the next beat tells."""

BEATS_A_CALL_MAX: Final = 500


class Cancellations:
    """A shortcut to what the pacemaker's next beat would say.

    The notification is a hint that any login can send. A heartbeat decides, made now instead of later.
    """

    def __init__(self, state: WorkerState, backend: Backend) -> None:
        self.state = state
        self.backend = backend
        self._named: set[int] = set()
        self._news = asyncio.Event()

    def heard(self, job_ids: Iterable[int]) -> None:
        """These were cancelled, says a notification; most run in other workers."""
        if len(self._named) < NAMED_MAX:
            self._named.update(job_ids)
            self._news.set()

    async def run(self) -> None:
        """Ask about whatever is named, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            named, self._named = self._named, set()
            attempts = [
                attempt for attempt in self._held() if attempt.job_id in named and attempt.stopping is None
            ]
            for start in range(0, len(attempts), BEATS_A_CALL_MAX):
                await self._ask(attempts[start : start + BEATS_A_CALL_MAX])

    def _held(self) -> list[Attempt]:
        return [*self.state.running, *self.state.buffer]

    async def _ask(self, attempts: list[Attempt]) -> None:
        try:
            beats = await self.backend.heartbeat(sorted(attempt.lease for attempt in attempts))
        except Exception as trouble:
            log.debug("of cancelled jobs the next beat will tell: %s", trouble)
            return
        gone = {
            (beat.job_id, beat.token): StopReason(beat.answer)
            for beat in beats
            if beat.answer in ("lost", "cancel")
        }
        for attempt in attempts:
            why = gone.get((attempt.job_id, attempt.token))
            if why is not None and attempt.stopping is None and attempt.generation:
                attempt.stop(why)
