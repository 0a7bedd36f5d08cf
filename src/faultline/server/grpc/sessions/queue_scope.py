"""Rights: the leases that a key for some queues only may name."""

from collections.abc import Container, Iterable
from typing import Final, Protocol

from faultline.server.auth import Caller
from faultline.store import calls
from faultline.store.call import Row
from faultline.store.pool import AsyncStore
from faultline.store.rows import AT

KNOWN_MAX: Final = 20_000


class _All(frozenset[int]):
    """A set of all jobs, for the many keys without a list of queues."""

    def __contains__(self, job_id: object) -> bool:
        return True


class OfAJob(Protocol):
    """A lease's name, with its claim or without."""

    @property
    def job_id(self) -> int: ...


class QueueScope:
    """Keeps the leases of the caller's own queues; other leases get the answer of leases that never existed.

    The claim id alone proves a lease. The check keeps refusals from telling a key for one queue which jobs
    another queue has, and from being recorded there.
    """

    def __init__(self, store: AsyncStore, caller: Caller) -> None:
        self._store = store
        self.caller = caller
        self._known: dict[int, str] = {}

    def learn(self, claimed: Iterable[Row]) -> None:
        """Note jobs that were assigned here, with their queues: later checks need no query for them."""
        if self.caller.queues is None:
            return
        self._make_room()
        self._known.update((row[AT.id], row[AT.queue]) for row in claimed)

    def _make_room(self) -> None:
        if len(self._known) > KNOWN_MAX:
            self._known.clear()

    async def keep(self, named: Iterable[OfAJob]) -> Container[int]:
        """The jobs of the named leases that this caller may use. At most one query."""
        allowed = self.caller.queues
        if allowed is None:
            return _All()
        queues = await self._queues_of({lease.job_id for lease in named})
        return {job_id for job_id, queue in queues.items() if queue in allowed}

    async def _queues_of(self, job_ids: set[int]) -> dict[int, str]:
        """The queues of the jobs that exist."""
        queues = {job_id: self._known[job_id] for job_id in job_ids if job_id in self._known}
        if unknown := sorted(job_ids - queues.keys()):
            found = await self._store.run(calls.queues_of(unknown))
            self._make_room()
            self._known |= found
            queues |= found
        return queues
