"""Server-sent events: live changes, with comments that keep proxies awake, and a way to resume."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated

import psycopg
from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from faultline.errors import DatabaseError, NotAllowed, NotAuthenticated
from faultline.server.auth import LOOK_EVERY_SECONDS, Caller
from faultline.server.http.api_context import ApiContext
from faultline.server.http.dependencies import Reader, TheContext
from faultline.server.http.event_feed import Subscriber, moment_of
from faultline.server.problems import RequestRefused

router = APIRouter(tags=["looking"])

Who = Callable[[], Awaitable[Caller]]
"""The caller of the stream, by its key."""

_STREAM = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


@router.get("/events", response_class=StreamingResponse, responses=_STREAM)  # type: ignore[arg-type]
async def events(
    request: Request,
    context: TheContext,
    caller: Reader,
    last_event_id: Annotated[str | None, Header(max_length=40)] = None,
) -> StreamingResponse:
    """A stream of leases as they end. Come back with Last-Event-ID, and it goes on from there.

    An event may come twice: job_id, token and outcome name it. `event: gap` says that more happened than can
    be told, or that an event which was committed late may be missing; the ledger has it. `event: behind` says
    that you read too slowly and that the stream ends; `event: bye` that the server stops, that the key opens
    nothing any more, or that it is for other queues now.
    """
    subscriber = context.feed.subscribe(caller)
    return EventStream(context, subscriber, _stream(context, request.state.who, subscriber, last_event_id))


class EventStream(StreamingResponse):
    """A stream that gives its place up when it ends, also if its client left before it began."""

    def __init__(self, context: ApiContext, subscriber: Subscriber, stream: AsyncIterator[bytes]) -> None:
        super().__init__(stream, media_type="text/event-stream")
        self._context = context
        self._subscriber = subscriber

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._context.feed.leave(self._subscriber)


async def _stream(
    context: ApiContext, who: Who, subscriber: Subscriber, last_event_id: str | None
) -> AsyncIterator[bytes]:
    yield b": faultline\nretry: 2000\n\n"
    moment = moment_of(last_event_id)
    if moment is not None:
        for event in await context.feed.since(moment):
            if subscriber.may_hear(event):
                yield event.text
    while not subscriber.over and not subscriber.behind:
        news = await subscriber.next(min(context.config.limits.comment_seconds, LOOK_EVERY_SECONDS))
        if (reason := await _reason_to_end(who, subscriber.caller)) is not None:
            yield b'event: bye\ndata: {"reason": "%s"}\n\n' % reason
            return
        yield news or b": nothing new\n\n"
    yield b"event: behind\ndata: {}\n\n" if subscriber.behind else b"event: bye\ndata: {}\n\n"


async def _reason_to_end(who: Who, before: Caller) -> bytes | None:
    """Why the stream must end, if it must; while the database is away, the last answer counts."""
    try:
        now = await who()
        now.require("read")
    except (NotAuthenticated, NotAllowed, RequestRefused):
        return b"the key opens nothing any more"
    except (DatabaseError, psycopg.Error):
        return None
    # Unread events were chosen by the rights of before: the client comes back for those it may see now.
    return None if now.queues == before.queues else b"the queues that you may read changed; connect again"
