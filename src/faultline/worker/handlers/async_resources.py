"""Resources for async handlers: opened and closed by one task of the loop, as cancel scopes demand."""

import asyncio
from contextlib import AsyncExitStack
from contextvars import Context
from typing import Any

from faultline.extensions import Resource
from faultline.job import Job
from faultline.worker.handlers.opening import CLOSE_MAX, OPEN_MAX, not_opened, tell_not_closed


class AsyncResources:
    """The async resources of one process, each opened when a job first asks for it."""

    def __init__(self) -> None:
        self._opened: dict[Resource, Any] = {}
        self._order: list[tuple[Resource, Any]] = []
        self._opening: dict[Resource, asyncio.Future[Any]] = {}
        self._asked: asyncio.Queue[tuple[Resource, Job] | None] = asyncio.Queue()
        self._owner: asyncio.Task[None] | None = None

    async def give(self, resource: Resource | None, job: Job, stack: AsyncExitStack) -> Any:
        """The resource itself; one of a job is opened here, and closed with the stack."""
        assert resource is not None, "asked at the worker's start"
        if resource.scope == "process":
            return self._opened[resource] if resource in self._opened else await self._ask(resource, job)
        try:
            return await stack.enter_async_context(resource.open(job))
        except Exception as error:
            raise not_opened(resource, error) from error

    async def _ask(self, resource: Resource, job: Job) -> Any:
        """Have the owner open it; all jobs that wait for it meanwhile get the same answer."""
        if self._owner is None:
            self._owner = asyncio.get_running_loop().create_task(self._own(), context=Context())
        if resource not in self._opening:
            self._opening[resource] = asyncio.get_running_loop().create_future()
            self._asked.put_nowait((resource, job))
        try:
            # A job that is stopped while it waits must not stop the opening for the others.
            return await asyncio.shield(self._opening[resource])
        except Exception as error:
            raise not_opened(resource, error) from error

    async def _own(self) -> None:
        while (asked := await self._asked.get()) is not None:
            await self._open(*asked)
        for resource, manager in reversed(self._order):
            try:
                async with asyncio.timeout(CLOSE_MAX):
                    await manager.__aexit__(None, None, None)
            except Exception as error:
                tell_not_closed(resource, error)

    async def _open(self, resource: Resource, job: Job) -> None:
        answer = self._opening[resource]
        try:
            manager = resource.open(job)
            async with asyncio.timeout(OPEN_MAX):
                value = await manager.__aenter__()
        except Exception as error:
            self._answer(resource, answer, error)
        except BaseException as error:
            self._answer(resource, answer, RuntimeError(f"{type(error).__name__}: {error}"))
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            self._opened[resource] = value
            self._order.append((resource, manager))
            del self._opening[resource]
            answer.set_result(value)

    def _answer(self, resource: Resource, answer: "asyncio.Future[Any]", error: Exception) -> None:
        """It failed for those who wait; the next job tries again."""
        del self._opening[resource]
        answer.set_exception(error)
        answer.exception()  # no warning, where the job that waited was stopped

    async def aclose(self) -> None:
        """Close them all, the last opened first."""
        owner, self._owner = self._owner, None
        if owner is not None:
            self._asked.put_nowait(None)
            await asyncio.wait((owner,), timeout=CLOSE_MAX * (len(self._order) + 1))
            owner.cancel()  # of no effect where it has ended: else it still opens something
            self._opened.clear()
            self._order.clear()
