"""The call of a handler with all that its app puts around it: middleware, then resources, then a transaction.

Handlers without any of these are called directly by the executor, and never come here.
"""

import inspect
from contextlib import AsyncExitStack, ExitStack
from typing import Any

from faultline.errors import ConfigError
from faultline.extensions import Injection
from faultline.job import Job
from faultline.task import TaskSpec
from faultline.worker.handlers.async_resources import AsyncResources
from faultline.worker.handlers.injected_transactions import InjectedTransactions
from faultline.worker.handlers.plain_resources import PlainResources


class Committed:
    """What became of the transaction inside a call: its value is not recorded a second time."""

    def __init__(self) -> None:
        self._value: Any = self
        self._failure: BaseException | None = None

    def succeed(self, value: Any) -> Any:
        self._value, self._failure = value, None
        return value

    def fail(self, error: BaseException) -> None:
        self._failure = error

    def rest(self, returned: Any) -> Any:
        """What is left to be recorded after the call: nothing, unless middleware changed the value."""
        if self._failure is not None:  # middleware swallowed it: a success now would be one without its rows
            raise self._failure
        return None if returned is self._value else returned


class HandlerCalls:
    """Calls handlers in one process: a worker's, or a child's."""

    def __init__(self, transactions: InjectedTransactions) -> None:
        self._transactions = transactions
        self._resources = AsyncResources()
        self._plain_resources = PlainResources()

    async def acall(self, job: Job, spec: TaskSpec, kwargs: dict[str, Any]) -> Any:
        """Run an async handler; gives what is left to be recorded."""
        if alone := _only_injection(spec):
            await self._transactions.arun(job, spec, alone, (job,) if spec.takes_job else (), kwargs)
            return None
        committed = Committed()

        async def call() -> Any:
            return await self._ainjected(job, spec, dict(kwargs), committed)

        returned = await spec.extensions.middleware.aaround(job, call)()
        if inspect.iscoroutine(returned):
            returned.close()
            raise ConfigError(
                f"task {job.task}, or middleware around it, returned a coroutine that was never awaited: "
                "write `return await call()`"
            )
        return committed.rest(returned)

    def call(self, job: Job, spec: TaskSpec, kwargs: dict[str, Any]) -> Any:
        """The same for a plain handler, in the thread that runs it."""
        if alone := _only_injection(spec):
            self._transactions.run(job, spec, alone, (job,) if spec.takes_job else (), kwargs)
            return None
        committed = Committed()

        def call() -> Any:
            return self._injected(job, spec, dict(kwargs), committed)

        return committed.rest(spec.extensions.middleware.around(job, call)())

    async def _ainjected(self, job: Job, spec: TaskSpec, kwargs: dict[str, Any], committed: Committed) -> Any:
        args = (job,) if spec.takes_job else ()
        injection = spec.injection
        if injection is None:
            return await spec.handler(*args, **kwargs)
        failure: BaseException | None = None
        async with AsyncExitStack() as stack:
            for name, kind in injection.resources:
                resource = spec.extensions.resources.find(kind, True)
                kwargs[name] = await self._resources.give(resource, job, stack)
            try:
                if injection.transaction is None:
                    return await spec.handler(*args, **kwargs)
                return committed.succeed(await self._transactions.arun(job, spec, injection, args, kwargs))
            except BaseException as error:
                failure = error
                if injection.transaction is not None:
                    committed.fail(error)
                raise
        raise failure or _swallowed()  # a resource that swallowed it would make a success of a failure

    def _injected(self, job: Job, spec: TaskSpec, kwargs: dict[str, Any], committed: Committed) -> Any:
        args = (job,) if spec.takes_job else ()
        injection = spec.injection
        if injection is None:
            return spec.handler(*args, **kwargs)
        failure: BaseException | None = None
        with ExitStack() as stack:
            for name, kind in injection.resources:
                resource = spec.extensions.resources.find(kind, False)
                kwargs[name] = self._plain_resources.give(resource, job, stack)
            try:
                if injection.transaction is None:
                    return spec.handler(*args, **kwargs)
                return committed.succeed(self._transactions.run(job, spec, injection, args, kwargs))
            except BaseException as error:
                failure = error
                if injection.transaction is not None:
                    committed.fail(error)
                raise
        raise failure or _swallowed()

    async def aclose(self) -> None:
        """Close what async handlers were given; errors are logged."""
        await self._resources.aclose()

    def close(self) -> None:
        """Close what plain handlers were given; errors are logged."""
        self._plain_resources.close()


def is_direct(spec: TaskSpec) -> bool:
    """Whether nothing stands around a handler."""
    return spec.injection is None and not spec.around


def _only_injection(spec: TaskSpec) -> Injection | None:
    """The transaction that is all that stands around a handler: what it commits is all there is to record."""
    alone = spec.injection
    if alone is None or alone.transaction is None or alone.resources or spec.around:
        return None
    return alone


def _swallowed() -> RuntimeError:
    return RuntimeError("a resource of the job swallowed the error of another resource")
