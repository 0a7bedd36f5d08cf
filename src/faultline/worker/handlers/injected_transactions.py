"""Injected transactions: begun before a handler, committed with the job's success after it."""

from typing import Any

from faultline.extensions import Injection
from faultline.extensions.transactions import MARK
from faultline.job import Job
from faultline.outcome import HANDLER_OUTCOMES
from faultline.task import TaskSpec


class InjectedTransactions:
    """Runs handlers inside the transaction that they ask for."""

    async def arun(
        self, job: Job, spec: TaskSpec, injection: Injection, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run an async handler; gives the value that was committed."""
        assert hasattr(injection.transaction, MARK)
        block: Any = job.complete()
        async with block as tx:
            value = _kept(await spec.handler(*args, tx, **kwargs))
            block.set_result(value)
        return value

    def run(
        self, job: Job, spec: TaskSpec, injection: Injection, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The same for a plain handler."""
        block: Any = job.complete()
        with block as tx:
            value = _kept(spec.handler(*args, tx, **kwargs))
            block.set_result(value)
        return value


def _kept(value: Any) -> Any:
    """A handler's value; an outcome that it returned is raised, so that the transaction rolls back."""
    if isinstance(value, HANDLER_OUTCOMES):
        raise value
    return value
