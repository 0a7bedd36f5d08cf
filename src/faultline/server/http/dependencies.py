"""Dependencies of routes: the ApiContext, and a caller with a scope."""

import re
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BeforeValidator

from faultline.bounds import QUEUE_CHARS_MAX, TASK_CHARS_MAX
from faultline.client.handle import found
from faultline.errors import InputError
from faultline.job import JobInfo
from faultline.server.auth import Caller
from faultline.server.http.api_context import ApiContext
from faultline.server.limits import PAGE_MAX
from faultline.server.problems import QUEUE_NEEDED, TOO_MANY, RequestRefused
from faultline.store import calls
from faultline.store.rows import Outline
from faultline.telemetry import printable
from faultline.text.suggest import did_you_mean

PREFIX = "/api/v1"
NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
ROOM_SHARE = 0.5
"""The part of a request's time that it waits for room."""
ID_MAX = 2**63 - 1
_DIGITS = re.compile(r"[1-9][0-9]{0,18}")


async def _context(request: Request) -> ApiContext:
    context: ApiContext = request.app.state.context
    return context


def requires_scope(scope: str) -> Callable[[Request], Awaitable[Caller]]:
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


def requires_everywhere(scope: str) -> Callable[[Request], Awaitable[Caller]]:
    """A dependency: the caller, who has this scope for every queue."""

    async def needed(request: Request) -> Caller:
        caller: Caller = request.state.caller
        caller.require_everywhere(scope)
        return caller

    return needed


async def known_parameters_only(request: Request) -> None:
    """Refuse an unknown query parameter: a mistyped filter would fit everything."""
    if not request.url.query:
        return
    # With its prefix or without, depending on the release of FastAPI.
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


def _in_digits(text: object) -> object:
    """Refuse other forms of an id, as 14.0 or +14: the budget of a request is chosen by its path."""
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("a job's id is a number from 1, in digits alone")
    return text


TheContext = Annotated[ApiContext, Depends(_context)]
Reader = Annotated[Caller, Depends(requires_scope("read"))]
Producer = Annotated[Caller, Depends(requires_scope("enqueue"))]
Operator = Annotated[Caller, Depends(requires_scope("operate"))]
Admin = Annotated[Caller, Depends(_everywhere)]

JobId = Annotated[int, Path(ge=1, le=ID_MAX), BeforeValidator(_in_digits)]

QueueName = Annotated[str, Path(min_length=1, max_length=QUEUE_CHARS_MAX, pattern=NAME)]
AQueue = Annotated[str | None, Query(min_length=1, max_length=QUEUE_CHARS_MAX, pattern=NAME)]
ATask = Annotated[str | None, Query(min_length=1, max_length=TASK_CHARS_MAX, pattern=NAME)]
Cursor = Annotated[str | None, Query(pattern=r"^[1-9][0-9]{0,17}$", description="`next` of the page before.")]
BeforeToken = Annotated[
    str | None,
    Query(pattern=r"^[1-9][0-9]{0,18}$", description="The token of the first lease of the page before."),
]
PageSize = Annotated[int, Query(ge=1, le=PAGE_MAX)]


def queues_of(caller: Caller, scope: str, queue: str | None) -> list[str] | None:
    """The queues of a query: the named one, or all that the caller may see (None: every one)."""
    if queue is not None:
        caller.require(scope, queue)
        return [queue]
    return None if caller.queues is None else sorted(caller.queues)


def see_all(caller: Caller) -> None:
    """For lists that cannot be limited to queues."""
    if caller.queues is not None:
        raise RequestRefused(QUEUE_NEEDED)


async def outline_for(context: ApiContext, caller: Caller, scope: str, job_id: int) -> Outline:
    """The same without its payload: a check of existence or state takes little memory."""
    outline = await context.run(calls.outline(job_id))
    if outline is not None and not caller.may(scope, outline.queue):
        outline = None
    return found(outline, job_id)


async def job_for(
    context: ApiContext, caller: Caller, scope: str, job_id: int, *, confirmed: bool = False
) -> JobInfo:
    """The job; a job of a queue that the caller may not see is answered like a missing one.

    Its args and result are JSON text: parsing and writing a mebibyte held the loop for a fifth of a
    second, and a hundred such reads of one key delayed every heartbeat.
    """
    job = await context.run(calls.get_unread(job_id, confirmed=confirmed))
    if job is not None and not caller.may(scope, job.queue):
        job = None
    return found(job, job_id)


async def take_room(context: ApiContext, caller: Caller, request: Request) -> None:
    """Room for one answer of up to a mebibyte. RequestGuard gives it back once the answer was read."""
    until = time.monotonic() + context.config.limits.answer_seconds_max * ROOM_SHARE
    share = await context.answers.room(caller.key_id or caller.name, until)
    if share is None:
        raise RequestRefused(TOO_MANY, "too many answers wait to be read; read them, and ask again")
    request.state.answer_share = share


def as_json(told: bytes) -> Response:
    """An answer that is JSON text already."""
    return Response(told, media_type="application/json")


def cursor_id(cursor: str | None) -> int | None:
    return None if cursor is None else int(cursor)


def next_cursor(page: list[Any], most: int) -> str | None:
    return str(page[-1].id) if len(page) == most else None
