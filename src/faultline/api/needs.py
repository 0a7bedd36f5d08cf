"""What routes ask for: the desk, and a caller with a scope."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response

from faultline.access import Caller
from faultline.api.desk import Desk
from faultline.api.problems import QUEUE_NEEDED, Refused
from faultline.bounds import QUEUE_CHARS_MAX, TASK_CHARS_MAX
from faultline.client.handle import found
from faultline.errors import InputError
from faultline.job import JobInfo
from faultline.server.limits import PAGE_MAX
from faultline.store import calls
from faultline.store.rows import Outline
from faultline.suggest import did_you_mean
from faultline.telemetry import printable

PREFIX = "/api/v1"
NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
ID_MAX = 2**63 - 1


async def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def needs(scope: str) -> Callable[[Request], Awaitable[Caller]]:
    """A dependency: the caller, who has this scope."""

    async def needed(request: Request) -> Caller:
        caller: Caller = request.state.caller
        caller.require(scope)
        return caller

    return needed


async def _everywhere(request: Request) -> Caller:
    caller: Caller = request.state.caller
    caller.require_everywhere("admin")
    return caller


async def known_parameters_only(request: Request) -> None:
    """Refuse a query parameter that the route does not take: a mistyped filter would fit everything."""
    if not request.url.query:
        return
    # With its prefix or without: that depends on the release of FastAPI.
    path = PREFIX + request.scope["route"].path_format.removeprefix(PREFIX)
    taken = request.app.openapi()["paths"].get(path, {}).get(request.method.lower())
    if taken is None:
        return
    known = [one["name"] for one in taken.get("parameters", ()) if one["in"] == "query"]
    for name in request.query_params:
        if name not in known:
            takes = f"; it takes {', '.join(known)}" if known else ""
            hint = did_you_mean(name, known) or takes
            raise InputError(f"there is no parameter {printable(name)[:100]!r} here{hint}")


TheDesk = Annotated[Desk, Depends(_desk)]
Reader = Annotated[Caller, Depends(needs("read"))]
Producer = Annotated[Caller, Depends(needs("enqueue"))]
Operator = Annotated[Caller, Depends(needs("operate"))]
Admin = Annotated[Caller, Depends(_everywhere)]

JobId = Annotated[int, Path(ge=1, le=ID_MAX)]
QueueName = Annotated[str, Path(min_length=1, max_length=QUEUE_CHARS_MAX, pattern=NAME)]
AQueue = Annotated[str | None, Query(min_length=1, max_length=QUEUE_CHARS_MAX, pattern=NAME)]
ATask = Annotated[str | None, Query(min_length=1, max_length=TASK_CHARS_MAX, pattern=NAME)]
Cursor = Annotated[str | None, Query(pattern=r"^[1-9][0-9]{0,17}$", description="`next` of the page before.")]
PageSize = Annotated[int, Query(ge=1, le=PAGE_MAX)]


def queues_of(caller: Caller, scope: str, queue: str | None) -> list[str] | None:
    """The queues to look in: the one that was named, or all that the caller may see (None: every one)."""
    if queue is not None:
        caller.require(scope, queue)
        return [queue]
    return None if caller.queues is None else sorted(caller.queues)


def see_all(caller: Caller) -> None:
    """For lists that cannot be told apart by queue."""
    if caller.queues is not None:
        raise Refused(QUEUE_NEEDED)


async def outline_for(desk: Desk, caller: Caller, scope: str, job_id: int) -> Outline:
    """The same without its payload: to look whether a job is there, or how it stands, takes little memory."""
    outline = await desk.run(calls.outline(job_id))
    if outline is not None and not caller.may(scope, outline.queue):
        outline = None
    return found(outline, job_id)


async def job_for(desk: Desk, caller: Caller, scope: str, job_id: int, *, confirmed: bool = False) -> JobInfo:
    """The job; one of a queue the caller may not see is, in the same words, not there.

    Its args and result are JSON text: to read a mebibyte and write it again held the loop for a fifth of a
    second, and a hundred such reads of one key every heartbeat for as long as they lasted.
    """
    job = await desk.run(calls.get_unread(job_id, confirmed=confirmed))
    if job is not None and not caller.may(scope, job.queue):
        job = None
    return found(job, job_id)


def as_json(told: bytes) -> Response:
    """An answer that is JSON already."""
    return Response(told, media_type="application/json")


def cursor_id(cursor: str | None) -> int | None:
    return None if cursor is None else int(cursor)


def next_cursor(page: list[Any], most: int) -> str | None:
    return str(page[-1].id) if len(page) == most else None
