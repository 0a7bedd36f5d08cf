"""Probes: whether the process is alive, whether it is ready, and its metrics."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from faultline.server.http.dependencies import Reader, TheContext, see_all
from faultline.server.problems import STOPPING, RequestRefused

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
async def readyz(context: TheContext) -> dict[str, bool]:
    """The database answers and its schema is one this server can work with."""
    if context.draining.is_set():
        raise RequestRefused(STOPPING)
    await context.check_ready()
    return {"ready": True}


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(
    context: TheContext, caller: Reader, accept: Annotated[str, Header(include_in_schema=False)] = ""
) -> Response:
    """What Prometheus scrapes: figures of all queues, so it takes a key that is for all of them."""
    see_all(caller)
    body, content_type = await context.metrics(accept)
    return Response(body, media_type=content_type)
