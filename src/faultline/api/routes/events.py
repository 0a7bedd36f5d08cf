"""Server-sent events: live changes, with comments that keep proxies awake, and a way to resume."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse

from faultline.access import Caller
from faultline.api.desk import Desk
from faultline.api.events import Subscriber, moment_of
from faultline.api.needs import Reader, TheDesk

router = APIRouter(tags=["looking"])

_STREAM = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


@router.get("/events", response_class=StreamingResponse, responses=_STREAM)  # type: ignore[arg-type]
async def events(
    desk: TheDesk, caller: Reader, last_event_id: Annotated[str | None, Header(max_length=40)] = None
) -> StreamingResponse:
    """A stream of leases as they end. Come back with Last-Event-ID, and it goes on from there.

    An event may come twice: job_id, token and outcome name it. `event: gap` says that more happened than can
    be told; the ledger has it. `event: behind` says that you read too slowly
    and that the stream ends; `event: bye` that the server stops.
    """
    subscriber = desk.feed.subscribe(caller)
    return StreamingResponse(_stream(desk, caller, subscriber, last_event_id), media_type="text/event-stream")


async def _stream(
    desk: Desk, caller: Caller, subscriber: Subscriber, last_event_id: str | None
) -> AsyncIterator[bytes]:
    try:
        yield b": faultline\nretry: 2000\n\n"
        moment = moment_of(last_event_id)
        if moment is not None:
            for event in await desk.feed.since(moment):
                if event.queue is None or caller.may("read", event.queue):
                    yield event.text
        while not subscriber.over and not subscriber.behind:
            yield await subscriber.next(desk.config.limits.comment_seconds) or b": nothing new\n\n"
        yield b"event: behind\ndata: {}\n\n" if subscriber.behind else b"event: bye\ndata: {}\n\n"
    finally:
        desk.feed.leave(subscriber)
