"""Faultline: a crash-safe job queue for Python on PostgreSQL. A job's work commits once, whatever crashes.

>>> from faultline import Faultline, Job
>>> app = Faultline("postgresql://app@db/shop")
>>> @app.task(queue="billing", max_attempts=5)
... async def charge(job: Job, order_id: int) -> None:
...     async with job.complete() as conn:
...         await conn.execute("update orders set paid = true where id = %s", [order_id])

`charge.enqueue(order_id=7)` puts a job in its queue; `faultline worker shop:app` runs it.
"""

__version__ = "0.1.0"

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faultline.app import Faultline
    from faultline.batch import BatchItem
    from faultline.client import Handle, Task
    from faultline.config import WorkerConfig
    from faultline.errors import (
        AlreadySettled,
        BadArguments,
        BadDocument,
        BadName,
        FaultlineError,
        HandlerDied,
        InSavepoint,
        JobCancelled,
        JobDead,
        JobNotFound,
        KeyConflict,
        LeaseLost,
        NotCommitted,
        NotInTransaction,
        OutcomeUnknown,
        OutOfBounds,
        QueueFull,
        ResourceFailed,
        ResultNotKept,
        TransactionConflict,
        TransactionEnded,
        TransactionOpen,
        WaitTimeout,
        WrongState,
    )
    from faultline.extensions import JobEvent, TransactionProvider, injected
    from faultline.job import Job, JobInfo, JobState, LedgerEntry, NewJob, Refusal
    from faultline.limit import Limit
    from faultline.outcome import Cancel, Dead, Snooze
    from faultline.retry import Constant, Exponential, Retry, RetryPolicy, bury, ignore
    from faultline.schedules import Occurrence, ScheduleInfo, at, every
    from faultline.store.lent import SyncTransaction, Transaction
    from faultline.unique import Unique

__all__ = [
    "AlreadySettled",
    "BadArguments",
    "BadDocument",
    "BadName",
    "BatchItem",
    "Cancel",
    "Constant",
    "Dead",
    "Exponential",
    "Faultline",
    "FaultlineError",
    "Handle",
    "HandlerDied",
    "InSavepoint",
    "Job",
    "JobCancelled",
    "JobDead",
    "JobEvent",
    "JobInfo",
    "JobNotFound",
    "JobState",
    "KeyConflict",
    "LeaseLost",
    "LedgerEntry",
    "Limit",
    "NewJob",
    "NotCommitted",
    "NotInTransaction",
    "Occurrence",
    "OutOfBounds",
    "OutcomeUnknown",
    "QueueFull",
    "Refusal",
    "ResourceFailed",
    "ResultNotKept",
    "Retry",
    "RetryPolicy",
    "ScheduleInfo",
    "Snooze",
    "SyncTransaction",
    "Task",
    "Transaction",
    "TransactionConflict",
    "TransactionEnded",
    "TransactionOpen",
    "TransactionProvider",
    "Unique",
    "WaitTimeout",
    "WorkerConfig",
    "WrongState",
    "__version__",
    "at",
    "bury",
    "every",
    "ignore",
    "injected",
]

# Each name is loaded when it is first used: a pacemaker, or `faultline --help`, uses few of them.
_HOMES = {
    "faultline.app": "Faultline",
    "faultline.batch": "BatchItem",
    "faultline.client": "Handle Task",
    "faultline.config": "WorkerConfig",
    "faultline.errors": (
        "AlreadySettled BadArguments BadDocument BadName FaultlineError HandlerDied InSavepoint "
        "JobCancelled JobDead JobNotFound KeyConflict LeaseLost NotCommitted NotInTransaction OutcomeUnknown "
        "OutOfBounds QueueFull ResourceFailed ResultNotKept TransactionConflict TransactionEnded "
        "TransactionOpen WaitTimeout WrongState"
    ),
    "faultline.extensions": "JobEvent TransactionProvider injected",
    "faultline.job": "Job JobInfo JobState LedgerEntry NewJob Refusal",
    "faultline.limit": "Limit",
    "faultline.outcome": "Cancel Dead Snooze",
    "faultline.retry": "Constant Exponential Retry RetryPolicy bury ignore",
    "faultline.schedules": "Occurrence ScheduleInfo at every",
    "faultline.store.lent": "SyncTransaction Transaction",
    "faultline.unique": "Unique",
}

if not TYPE_CHECKING:  # to a type checker it would say that every name is there

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        for home, names in _HOMES.items():
            if name in names.split():
                globals()[name] = found = getattr(import_module(home), name)
                return found
            if home == f"faultline.{name}":
                return import_module(home)
        raise AttributeError(f"module 'faultline' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
