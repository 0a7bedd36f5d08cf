"""Rights: which leases a key that is for some queues only may speak of."""

from collections.abc import Container, Iterable, Sequence
from typing import Final

from faultline.access import Caller
from faultline.lease import Held
from faultline.rpc.v1 import worker_pb2
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
        self._make_room()
        self._known.update((row[ID], row[QUEUE]) for row in claimed)

    def _make_room(self) -> None:
        if len(self._known) > KNOWN_MAX:
            self._known.clear()

    async def keep(self, named: Sequence[Held]) -> Container[int]:
        """The jobs whose leases, of those named, this caller may speak of."""
        allowed = self.caller.queues
        if allowed is None:
            return _All()
        return {lease.job_id for lease in named if await self._queue_of(lease.job_id) in allowed}

    async def names(self, named: Iterable[worker_pb2.LeaseName]) -> list[tuple[int, int]]:
        """Those leases, by job and token, that are of the caller's own queues."""
        allowed = self.caller.queues
        return [
            (one.job_id, one.token)
            for one in named
            if allowed is None or await self._queue_of(one.job_id) in allowed
        ]

    async def _queue_of(self, job_id: int) -> str | None:
        if job_id not in self._known:
            job = await self._store.run(calls.outline(job_id))
            if job is None:
                return None
            self._make_room()
            self._known[job_id] = job.queue
            return job.queue
        return self._known[job_id]
