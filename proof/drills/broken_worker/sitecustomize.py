"""Loaded by each process of a sabotaged drill as it starts: breaks the worker as FAULTLINE_MUTANT says."""

import os
from typing import Any


def effects_apart() -> None:
    """job.complete lends a connection that commits every statement by itself."""
    from faultline.store.pool import Store
    from faultline.worker.transactions.transaction import WorkTransaction

    enter = WorkTransaction.__enter__

    def without_a_block(self: WorkTransaction) -> Any:
        conn = enter(self)
        self._conn.execute("commit")
        return conn

    def complete_alone(self: WorkTransaction) -> None:
        Store.run_in(self._conn, self._last_call())

    WorkTransaction.__enter__ = without_a_block  # type: ignore[method-assign]
    WorkTransaction._complete = complete_alone  # type: ignore[method-assign]


def two_at_once() -> None:
    """A worker starts an attempt of a job whose older attempt still runs in it."""
    from faultline.worker.state import WorkerState

    WorkerState.at_work_on = lambda self: {}  # type: ignore[method-assign]


def guess_lost_commits() -> None:
    """A commit whose reply was lost is taken for one that did not happen, and the rows are not asked.

    Both lines of defence: left alone, the settler finds that the job it was told to put off had succeeded.
    """
    from faultline.worker.settlement.settler import Settler
    from faultline.worker.transactions.transaction import WorkTransaction

    def guess(self: WorkTransaction, broken: Exception) -> None:
        self._judge("running", broken)

    async def not_committed(self: Settler, attempt: Any) -> bool:
        return False

    WorkTransaction._resolve = guess  # type: ignore[method-assign]
    Settler._committed = not_committed  # type: ignore[method-assign]


if mutant := os.environ.get("FAULTLINE_MUTANT"):
    globals()[mutant]()
