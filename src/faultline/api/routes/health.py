"""Health: is the process there, is it of use, and its metrics."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from faultline.api.needs import Reader, TheDesk, see_all
from faultline.api.problems import STOPPING, Refused

router = APIRouter(tags=["health"])

_NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {"description": "The database or its schema cannot be used, or the server stops."}
}


@router.get("/healthz")
@router.get("/health")
async def healthz() -> dict[str, str]:
    """The process is there and answers."""
    return {"status": "ok"}


@router.get("/readyz", responses=_NOT_READY)
async def readyz(desk: TheDesk) -> dict[str, bool]:
    """The database answers and its schema is one this server can work with."""
    if desk.draining.is_set():
        raise Refused(STOPPING)
    await desk.check_ready()
    return {"ready": True}


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(
    desk: TheDesk, caller: Reader, accept: Annotated[str, Header(include_in_schema=False)] = ""
) -> Response:
    """What Prometheus scrapes: figures of all queues, so it takes a key that is for all of them."""
    see_all(caller)
    body, content_type = await desk.metrics(accept)
    return Response(body, media_type=content_type)
