"""create_app: builds the ASGI app."""

from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from faultline import __version__
from faultline.errors import InputError
from faultline.server.auth import Authenticator
from faultline.server.http import models
from faultline.server.http.api_context import ApiConfig, ApiContext, Metrics
from faultline.server.http.dependencies import PREFIX, known_parameters_only
from faultline.server.http.guard.request_guard import RequestGuard
from faultline.server.http.problem_document import CONTENT_TYPE
from faultline.server.http.routes import (
    bulk_acts,
    drills,
    event_stream,
    job_acts,
    jobs,
    limits,
    probes,
    queues,
    reads,
    schedule_acts,
    schedules,
)
from faultline.server.http.submit import fast_path, submission
from faultline.server.problems import MALFORMED, NO_SUCH_PAGE, WRONG_METHOD, ProblemKind, RequestRefused
from faultline.store.pool import AsyncStore

_ABOUT: Final = """Jobs of one Faultline database, over HTTP.

Show an API key as `Authorization: Bearer flk_...`. Without one only probes are answered.
Whatever is refused is answered with `application/problem+json`: a code, what happened, and what to do."""

_PROBLEM: Final[dict[int | str, dict[str, Any]]] = {
    "default": {
        "description": "Why it was not done.",
        "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemView"}}},
    }
}


def create_app(
    store: AsyncStore,
    authenticator: Authenticator,
    config: ApiConfig | None = None,
    metrics: Metrics | None = None,
) -> FastAPI:
    """The HTTP API as an ASGI app: serve it alone, or mount it in your own.

    >>> app = create_app(AsyncStore("dbname=shop"), Authenticator(AsyncStore("dbname=shop")))
    >>> "/api/v1/jobs" in app.openapi()["paths"]
    True
    """
    app = FastAPI(
        title="Faultline", version=__version__, description=_ABOUT, openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None, redoc_url=None, responses=_PROBLEM, redirect_slashes=False,
    )  # fmt: skip
    config = config or ApiConfig()
    context = ApiContext(store, authenticator, config, metrics)
    app.state.context = context
    api = APIRouter(prefix=PREFIX, dependencies=[Depends(known_parameters_only)])
    for part in (bulk_acts, jobs, job_acts, queues, limits, schedules, schedule_acts, reads, event_stream):
        api.include_router(part.router)
    if config.drills:
        api.include_router(drills.router)
    app.include_router(api)
    app.include_router(probes.router)
    app.add_exception_handler(RequestValidationError, _bad_input)
    app.add_exception_handler(HTTPException, _bad_address)
    app.add_middleware(RequestGuard, context=context)
    describe(app)
    return app


def describe(app: FastAPI) -> None:
    """Add to the OpenAPI document what FastAPI cannot see: the fast path, our schemas, problems and keys."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            parts = document.setdefault("components", {})
            schemas = parts.setdefault("schemas", {})
            schemas.update(submission.schemas())
            schemas["ProblemView"] = models.ProblemView.model_json_schema()
            schemas["Submitted"] = models.Submitted.model_json_schema()
            submit = fast_path.operation()
            submit["responses"] |= _PROBLEM
            document["paths"][fast_path.SUBMIT]["post"] = submit
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            parts["securitySchemes"] = {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key."}
            }
            document["security"] = [{"key": []}, {}]
            for operations in document["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)  # ours is among the problems
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]


async def _bad_input(request: Request, error: Exception) -> Any:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        raise RequestRefused(MALFORMED, "the body is not JSON") from None
    where = ".".join(str(part) for part in first["loc"][1:]) or "body"
    raise InputError(f"{where}: {first['msg']}") from None


async def _bad_address(request: Request, error: Exception) -> Any:
    assert isinstance(error, HTTPException)
    kinds: dict[int, ProblemKind] = {404: NO_SUCH_PAGE, 405: WRONG_METHOD}
    allow = (error.headers or {}).get("Allow") if error.status_code == 405 else None
    if allow and request.url.path == fast_path.SUBMIT:
        allow = f"{allow}, POST"  # a route that the router does not see
    detail = f"{request.url.path} takes {allow}" if allow else ""
    raise RequestRefused(kinds.get(error.status_code, MALFORMED), detail, allow=allow) from None
