"""Rights: which leases a key that is for some queues only may speak of."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from faultline.access import Caller
from faultline.lease import Lease
from faultline.rpc.v1 import worker_pb2
from faultline.store import calls
from faultline.store.run import AsyncStore

KNOWN_MAX: Final = 20_000


class _All(frozenset[Lease]):
    """Every lease there may be, for the many keys that are for all queues."""

    def __contains__(self, lease: object) -> bool:
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

    def learn(self, jobs: Iterable[tuple[int, str]]) -> None:
        """These jobs were given out here, from these queues: no need to ask for them again."""
        if self.caller.queues is None:
            return
        self._make_room()
        self._known.update(jobs)

    def _make_room(self) -> None:
        if len(self._known) > KNOWN_MAX:
            self._known.clear()

    async def keep(self, named: Sequence[Lease]) -> Collection[Lease]:
        """Those of the leases that this caller may speak of."""
        allowed = self.caller.queues
        if allowed is None:
            return named if len(named) < 2 else _All()
        return {lease for lease in named if await self._queue_of(lease.job_id) in allowed}

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
