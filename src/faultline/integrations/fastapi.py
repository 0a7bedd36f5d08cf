"""Faultline in a FastAPI or Starlette app: its lifespan, jobs in a request's transaction, and the HTTP API.

FastAPI comes with an extra: `pip install 'faultline-queue[server]'`. Faultline itself does not need it.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
)
from typing import Annotated, Any, Final, ParamSpec, TypeVar

from fastapi import Depends
from fastapi.params import Depends as Dependency

from faultline.app import Faultline
from faultline.client import Handle, Task
from faultline.connections import AwaitedConnection
from faultline.errors import ConfigError
from faultline.integrations.fastapi_api import Authorize, api
from faultline.server.auth import Caller
from faultline.worker.options import RunOptions

__all__ = ["Authorize", "Caller", "Enqueuer", "api", "enqueuer", "lifespan", "transaction"]

P = ParamSpec("P")
R = TypeVar("R")

BEFORE_THE_ANSWER: Final = "function"
"""The scope of a dependency that ends before the answer is sent; the default of FastAPI ends it after."""


def lifespan(
    app: Faultline, *, worker: RunOptions | None = None
) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """The lifespan of a web app: it opens and closes the app's connections, and may run a worker beside it.

        web = FastAPI(lifespan=lifespan(app))
        web = FastAPI(lifespan=lifespan(app, worker={"concurrency": 5}))

    A database that is not there, or has no schema, stops the start. A lifespan of your own does the same with
    `async with app, app.worker(concurrency=5):`.

    >>> from fastapi import FastAPI
    >>> web = FastAPI(lifespan=lifespan(Faultline("dbname=shop")))
    """

    @asynccontextmanager
    async def running(web: Any) -> AsyncIterator[None]:
        async with app:
            await app.ajobs(limit=1)  # the first connection is made and checked here, not in a request
            async with nullcontext() if worker is None else app.worker(**worker):
                yield

    return running


def transaction(
    begin: Callable[[], AbstractAsyncContextManager[Any] | AbstractContextManager[Any]],
) -> Any:
    """A dependency: a session or connection in a transaction, committed before the answer is sent.

        Session = Annotated[AsyncSession, transaction(async_sessionmaker(engine).begin)]

        @web.post("/orders")
        async def place(order: NewOrder, session: Session) -> int: ...

    A dependency with `yield` ends after the answer by default: then a client may be told of an order, and of
    its job, that the commit refused. An exception of the route rolls back.

    >>> from contextlib import asynccontextmanager
    >>> @asynccontextmanager
    ... async def begin(): yield "a session"
    >>> transaction(begin).scope
    'function'
    """

    async def awaited() -> AsyncIterator[Any]:
        async with begin() as session:  # type: ignore[union-attr]
            yield session

    def plain() -> Iterator[Any]:
        with begin() as session:  # type: ignore[union-attr]
            yield session

    return Depends(awaited if _is_async(begin) else plain, scope=BEFORE_THE_ANSWER)


class Enqueuer:
    """Enqueues jobs in the transaction of one request: they exist once it has committed."""

    def __init__(self, session: AwaitedConnection) -> None:
        self._session = session

    async def __call__(self, task: Task[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put a job in its queue with the request's commit.

        handle = await enqueue(charge.using(key="order-7"), order_id=7)
        """
        return await task.aenqueue_in(self._session, *args, **kwargs)


def enqueuer(session: Any) -> Any:
    """A dependency: an Enqueuer in the session of another dependency, made by `transaction`.

        in_request = transaction(async_sessionmaker(engine).begin)
        Session = Annotated[AsyncSession, in_request]
        Enqueue = Annotated[Enqueuer, enqueuer(in_request)]

    One request has one such session, so that the rows and the jobs of a route commit together.
    """
    if not isinstance(session, Dependency) or session.scope != BEFORE_THE_ANSWER:
        raise ConfigError(
            "enqueuer() takes what transaction() has made, or Depends(..., scope='function'): a session that "
            "is committed after the answer could lose jobs that the client was told of"
        )

    async def made(session: Annotated[Any, session]) -> Enqueuer:
        return Enqueuer(session)

    return Depends(made, scope=BEFORE_THE_ANSWER)


def _is_async(begin: Callable[[], Any]) -> bool:
    """Whether it is entered by `async with`, by its own word or by that of a block that it makes."""
    function = inspect.unwrap(begin)
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        return inspect.isasyncgenfunction(function)
    return hasattr(begin(), "__aenter__")  # not entered: no connection is made
