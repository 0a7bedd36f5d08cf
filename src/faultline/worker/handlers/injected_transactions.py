"""Injected transactions: begun before a handler, committed with the job's success after it."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from faultline.errors import ConfigError, TransactionEnded
from faultline.extensions import Injection, TransactionProvider
from faultline.extensions.transactions import MARK
from faultline.job import Job
from faultline.outcome import HANDLER_OUTCOMES
from faultline.store.carrier import async_carrier, plain_carrier
from faultline.task import TaskSpec
from faultline.worker.attempt import Attempt, AttemptPhase
from faultline.worker.handlers.database_check import FORM, DatabaseCheck

log = logging.getLogger("faultline.worker")

LONG: Final = 5.0
"""Seconds after which an injected transaction is told of, once for each task."""

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


class InjectedTransactions:
    """Runs handlers inside the transaction that they ask for; gives the values that were committed."""

    def __init__(self, dsn: str | None = None) -> None:
        self._check = DatabaseCheck(dsn)
        self._told: set[str] = set()

    async def arun(self, job: Job, spec: TaskSpec, injection: Injection, args: Args, kwargs: Kwargs) -> Any:
        """Run an async handler."""
        began = time.monotonic()
        if hasattr(injection.transaction, MARK):
            value = await _aours(job, spec, args, kwargs)
        else:
            value = await self._atheirs(job, spec, injection, args, kwargs)
        self._tell_long(job, time.monotonic() - began)
        return value

    def run(self, job: Job, spec: TaskSpec, injection: Injection, args: Args, kwargs: Kwargs) -> Any:
        """The same for a plain handler."""
        began = time.monotonic()
        if hasattr(injection.transaction, MARK):
            value = _ours(job, spec, args, kwargs)
        else:
            value = self._theirs(job, spec, injection, args, kwargs)
        self._tell_long(job, time.monotonic() - began)
        return value

    async def _atheirs(
        self, job: Job, spec: TaskSpec, injection: Injection, args: Args, kwargs: Kwargs
    ) -> Any:
        """In a transaction of the app's own, whose last statement completes the job."""
        provider = _provider(spec, injection)
        async with provider.begin() as conn:
            carrier = async_carrier(conn, FORM)
            carrier.watch()
            await self._check.acheck(provider, conn, job.task)
            given = (conn,) if injection.in_call else ()
            with _in_transaction(job):
                value = _kept(await spec.handler(*args, *given, **kwargs))
            if await carrier.was_ended():
                raise ended_by_hand(job)
            await job.complete_in(conn, result=value)
        return value

    def _theirs(self, job: Job, spec: TaskSpec, injection: Injection, args: Args, kwargs: Kwargs) -> Any:
        provider = _provider(spec, injection)
        with provider.begin() as conn:
            carrier = plain_carrier(conn, FORM)
            carrier.watch()
            self._check.check(provider, conn, job.task)
            given = (conn,) if injection.in_call else ()
            with _in_transaction(job):
                value = _kept(spec.handler(*args, *given, **kwargs))
            if carrier.was_ended():
                raise ended_by_hand(job)
            job.complete_in(conn, result=value)
        return value

    def _tell_long(self, job: Job, seconds: float) -> None:
        if seconds < LONG or job.task in self._told:
            return
        self._told.add(job.task)
        log.warning(
            "the transaction of job %d (%s) was open for %.1f s, as long as its handler ran: meanwhile no "
            "dead row of the database can be vacuumed. Do the slow part first and commit in a short block: "
            "`with job.complete() as tx:`", job.id, job.task, seconds,
        )  # fmt: skip


async def _aours(job: Job, spec: TaskSpec, args: Args, kwargs: Kwargs) -> Any:
    """In the block of job.complete(), which knows the fence and reads COMMIT's answer."""
    block: Any = job.complete()
    async with block as tx:
        value = _kept(await spec.handler(*args, tx, **kwargs))
        block.set_result(value)
    return value


def _ours(job: Job, spec: TaskSpec, args: Args, kwargs: Kwargs) -> Any:
    block: Any = job.complete()
    with block as tx:
        value = _kept(spec.handler(*args, tx, **kwargs))
        block.set_result(value)
    return value


def _provider(spec: TaskSpec, injection: Injection) -> TransactionProvider:
    provider = spec.extensions.transactions.find(injection.transaction)
    if provider is None:  # registered in the worker, and not where a child process imports the task
        raise ConfigError(
            f"task {spec.name} asks for a {injection.transaction}, and no maker of it is registered in this "
            "process: register it where its module is imported"
        )
    return provider


@contextmanager
def _in_transaction(job: Job) -> Iterator[None]:
    """No block, and no other completion, while the handler has a transaction: a job commits in one."""
    attempt: Attempt | None = job._attempt
    if attempt is not None:
        attempt.phase = AttemptPhase.IN_TRANSACTION
    try:
        yield
    finally:
        if attempt is not None and attempt.phase is AttemptPhase.IN_TRANSACTION:
            attempt.phase = AttemptPhase.WORKING


def ended_by_hand(job: Job) -> TransactionEnded:
    """The error of a handler after which its transaction was not open any more."""
    return TransactionEnded(
        f"the handler of job {job.id} ({job.task}) itself ended the transaction it was given, by commit(), "
        "rollback(), or such a statement; what it wrote before may be committed, without the job's success. "
        "Leave the end to the worker, and use a savepoint (begin_nested) for a part that may fail"
    )


def _kept(value: Any) -> Any:
    """A handler's value; an outcome that it returned is raised, so that the transaction rolls back."""
    if isinstance(value, HANDLER_OUTCOMES):
        raise value
    return value
