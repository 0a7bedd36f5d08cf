"""Faultline: a crash-safe job queue for Python on PostgreSQL. A job's work commits once, whatever crashes.

>>> app = Faultline("postgresql://app@db/shop")
>>> @app.task(queue="billing", max_attempts=5)
... async def charge(job: Job, order_id: int) -> None:
...     async with job.transaction() as conn:
...         await conn.execute("update orders set paid = true where id = %s", [order_id])

`charge.enqueue(order_id=7)` puts a job in its queue; `faultline worker shop:app` runs it.
"""

__version__ = "0.1.0"

from faultline.client import Faultline, Handle, Task
from faultline.config import WorkerConfig
from faultline.errors import (
    AlreadySettled,
    BadArguments,
    BadDocument,
    BadName,
    FaultlineError,
    HandlerDied,
    JobCancelled,
    JobDead,
    JobNotFound,
    KeyConflict,
    LeaseLost,
    OutcomeUnknown,
    OutOfBounds,
    TransactionEnded,
    TransactionOpen,
    WaitTimeout,
    WrongState,
)
from faultline.job import Job, JobInfo, JobState, LedgerEntry, NewJob, Refusal
from faultline.outcome import Cancel, Dead, Snooze
from faultline.retry import Constant, Exponential, Retry, RetryPolicy, bury, ignore

__all__ = [
    "AlreadySettled",
    "BadArguments",
    "BadDocument",
    "BadName",
    "Cancel",
    "Constant",
    "Dead",
    "Exponential",
    "Faultline",
    "FaultlineError",
    "Handle",
    "HandlerDied",
    "Job",
    "JobCancelled",
    "JobDead",
    "JobInfo",
    "JobNotFound",
    "JobState",
    "KeyConflict",
    "LeaseLost",
    "LedgerEntry",
    "NewJob",
    "OutOfBounds",
    "OutcomeUnknown",
    "Refusal",
    "Retry",
    "RetryPolicy",
    "Snooze",
    "Task",
    "TransactionEnded",
    "TransactionOpen",
    "WaitTimeout",
    "WorkerConfig",
    "WrongState",
    "__version__",
    "bury",
    "ignore",
]
