"""TaskKinds: which workers know the same tasks. A wake-up that one could not use goes to another kind."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from faultline.bounds import check_task_name
from faultline.store import calls
from faultline.store.pool import AsyncStore

TASKS_MAX: Final = 1000
"""A worker that names more is treated as one that names none: it is given jobs of every task."""

REMEMBERED_MAX: Final = 10_000

Kind = int | str
"""Of workers that named tasks a hash of them; of one that this replica has not seen begin, its number."""


class TaskKinds:
    """Records the tasks of workers in the database, and remembers a number for each set of tasks."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._kinds: OrderedDict[int, Kind | None] = OrderedDict()

    async def learn(self, worker: int, named: Sequence[str], *, is_new: bool) -> None:
        """Have claims of this worker take jobs of these tasks only; BadName for a name that no task has."""
        tasks = checked(named)
        if tasks or not is_new:
            await self._store.run(calls.know_tasks(worker, tasks))
        self._kinds[worker] = hash(frozenset(tasks)) if tasks else None
        if len(self._kinds) > REMEMBERED_MAX:
            self._kinds.popitem(last=False)

    def of(self, worker: int | None) -> Kind | None:
        """The kind of a worker; None for one that takes jobs of every task."""
        return self._kinds.get(worker, f"worker {worker}") if worker else None


def checked(named: Sequence[str]) -> Sequence[str] | None:
    """The tasks that a Hello names, each once; None for none, and for too many."""
    return sorted(map(check_task_name, set(named))) if 0 < len(named) <= TASKS_MAX else None
