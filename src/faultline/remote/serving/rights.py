"""Rights: which leases a key that is for some queues only may speak of."""

from collections.abc import Container, Iterable, Sequence
from typing import Final

from faultline.access import Caller
from faultline.lease import Held
from faultline.store import calls
from faultline.store.call import Row
from faultline.store.rows import Claimed
from faultline.store.run import AsyncStore

KNOWN_MAX: Final = 20_000
ID: Final = Claimed._fields.index("id")
QUEUE: Final = Claimed._fields.index("queue")


class _All(frozenset[int]):
    """Every job there may be, for the many keys that are for all queues."""

    def __contains__(self, job_id: object) -> bool:
        return True


class Rights:
    """Keeps the leases of the caller's own queues; of others it says what it says of those that never were.

    The claim id alone proves a lease. This is so that a key for one queue cannot learn from a refusal which
    jobs another queue has, nor have refusals recorded there.
    """

    def __init__(self, store: AsyncStore, caller: Caller) -> None:
        self._store = store
        self.caller = caller
        self._known: dict[int, str] = {}

    def learn(self, claimed: Iterable[Row]) -> None:
        """These jobs were given out here, from their queues: no need to ask for them again."""
        if self.caller.queues is None:
            return
        if len(self._known) > KNOWN_MAX:
            self._known.clear()
        self._known.update((row[ID], row[QUEUE]) for row in claimed)

    async def keep(self, named: Sequence[Held]) -> Container[int]:
        """The jobs whose leases, of those named, this caller may speak of."""
        allowed = self.caller.queues
        if allowed is None:
            return _All()
        return {lease.job_id for lease in named if await self._queue_of(lease.job_id) in allowed}

    async def _queue_of(self, job_id: int) -> str | None:
        if job_id not in self._known:
            info = await self._store.run(calls.get(job_id))
            if info is None:
                return None
            self._known[job_id] = info.queue
        return self._known[job_id]
