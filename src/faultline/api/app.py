"""create_app: the ASGI app, wired."""

from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from faultline import __version__
from faultline.access import Doorman
from faultline.api import models, submission
from faultline.api.desk import ApiConfig, Desk, Metrics
from faultline.api.gate import Gate
from faultline.api.needs import PREFIX, known_parameters_only
from faultline.api.problems import CONTENT_TYPE, MALFORMED, NO_SUCH_PAGE, WRONG_METHOD, Kind, Refused
from faultline.api.routes import bulk, drills, events, health, jobs, looking, operate, queues
from faultline.errors import InputError
from faultline.store.run import AsyncStore

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
    store: AsyncStore, doorman: Doorman, config: ApiConfig | None = None, metrics: Metrics | None = None
) -> FastAPI:
    """The HTTP API as an ASGI app: serve it alone, or mount it in your own.

    >>> app = create_app(AsyncStore("dbname=shop"), Doorman(AsyncStore("dbname=shop")))
    >>> "/api/v1/jobs" in app.openapi()["paths"]
    True
    """
    app = FastAPI(
        title="Faultline", version=__version__, description=_ABOUT, openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None, redoc_url=None, responses=_PROBLEM, redirect_slashes=False,
    )  # fmt: skip
    desk = Desk(store, doorman, config or ApiConfig(), metrics)
    app.state.desk = desk
    api = APIRouter(prefix=PREFIX, dependencies=[Depends(known_parameters_only)])
    for part in (bulk, jobs, operate, queues, looking, events, drills):
        api.include_router(part.router)
    app.include_router(api)
    app.include_router(health.router)
    app.add_exception_handler(RequestValidationError, _bad_input)
    app.add_exception_handler(HTTPException, _bad_address)
    app.add_middleware(Gate, desk=desk)
    describe(app)
    return app


def describe(app: FastAPI) -> None:
    """Have the OpenAPI document hold what FastAPI cannot see: the door's own schemas, problems and keys."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            parts = document.setdefault("components", {})
            schemas = parts.setdefault("schemas", {})
            schemas.update(submission.schemas())
            schemas["ProblemView"] = models.ProblemView.model_json_schema()
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
        raise Refused(MALFORMED, "the body is not JSON") from None
    where = ".".join(str(part) for part in first["loc"][1:]) or "body"
    raise InputError(f"{where}: {first['msg']}") from None


async def _bad_address(request: Request, error: Exception) -> Any:
    assert isinstance(error, HTTPException)
    kinds: dict[int, Kind] = {404: NO_SUCH_PAGE, 405: WRONG_METHOD}
    raise Refused(kinds.get(error.status_code, MALFORMED)) from None
