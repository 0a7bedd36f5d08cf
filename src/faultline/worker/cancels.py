"""Hears that jobs in hand were cancelled, asks whether it is so, and stops their handlers at once."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from faultline.store import calls
from faultline.worker.doors import Carrier
from faultline.worker.hand import Hand
from faultline.worker.shelf import Shelf

log = logging.getLogger("faultline.worker")

NAMED_MAX: Final = 10_000
"""Jobs we were told of and have not looked at yet; of more the next beat tells."""

BEATS_A_CALL_MAX: Final = 500


class Cancels:
    """A shortcut to what the pacemaker's next beat would say.

    The news is a hint that anybody can send. So it is a beat that decides, made now instead of later.
    """

    def __init__(self, shelf: Shelf, line: Carrier, worker: int) -> None:
        self.shelf = shelf
        self.line = line
        self.worker = worker
        self._named: set[int] = set()
        self._news = asyncio.Event()

    def heard(self, job_ids: Iterable[int]) -> None:
        """Somebody says that these were cancelled; mostly they are in other hands than ours."""
        if len(self._named) < NAMED_MAX:
            self._named.update(job_ids)
            self._news.set()

    async def run(self) -> None:
        """Ask about whatever is named, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            named, self._named = self._named, set()
            hands = [hand for hand in self._held() if hand.job_id in named and hand.stopping is None]
            for start in range(0, len(hands), BEATS_A_CALL_MAX):
                await self._ask(hands[start : start + BEATS_A_CALL_MAX])

    def _held(self) -> list[Hand]:
        return [*self.shelf.running, *self.shelf.buffer]

    async def _ask(self, hands: list[Hand]) -> None:
        lease = self.shelf.config.lease_for
        try:
            beats = await self.line.run(
                calls.heartbeat(sorted(hand.lease for hand in hands), lease, self.worker)
            )
        except Exception as trouble:
            log.debug("of cancelled jobs the next beat will tell: %s", trouble)
            return
        gone = {(beat.job_id, beat.token): beat.answer for beat in beats if beat.answer in ("lost", "cancel")}
        for hand in hands:
            why = gone.get((hand.job_id, hand.token))
            if why is not None and hand.stopping is None and hand.generation:
                hand.stop(why)
