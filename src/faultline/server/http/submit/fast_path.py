"""The fast path: `POST /jobs`, which RequestGuard answers itself, past the router of FastAPI.

It is the busiest route. As an ordinary one it took twice the CPU of the server (over 16 connections 0.40 ms a
request and not 0.20, over 64 0.38 and not 0.17), and served half to two thirds of the requests a second. All
checks of RequestGuard apply to it. FastAPI sees no route, so its OpenAPI description stands here too.
"""

from typing import Any, Final
from urllib.parse import quote

import msgspec

from faultline.server.auth import Caller
from faultline.server.http.api_context import ApiContext
from faultline.server.http.guard.request_head import RequestHead
from faultline.server.http.guard.responder import Responder
from faultline.server.http.submit.submission import decode_one
from faultline.server.problems import OVERLOADED, RequestRefused
from faultline.server.throttling.document_pacing import LARGE_BYTES, DocumentPacing
from faultline.telemetry.tracing import context_of

SUBMIT: Final = "/api/v1/jobs"

_encode: Final = msgspec.json.Encoder().encode


def is_fast(head: RequestHead) -> bool:
    """Whether a request takes the fast path."""
    return head.route == SUBMIT and head.method == "POST"


async def submit_one(
    context: ApiContext, head: RequestHead, caller: Caller, body: bytes, answer: Responder
) -> None:
    """Enqueue one job; 201 for a new one, 200 when its key names one that was there."""
    caller.require("enqueue")
    key = head.job_key
    if len(body) <= LARGE_BYTES:
        new = decode_one(body, key)
    else:
        new = await DocumentPacing.of_this_loop().one(lambda: decode_one(body, key), len(body))
        caller = await head.scope["state"]["who"]()  # the turn may have come late
    caller.require("enqueue", new.queue)
    if (parent := head.headers.get(b"traceparent")) is not None:
        trace = context_of(parent, head.headers.get(b"tracestate"))
        new = msgspec.structs.replace(new, trace=trace)
    if context.batcher.is_full:
        raise RequestRefused(OVERLOADED, "too many jobs wait to be stored", 1)
    job_id, is_new = await context.batcher.add(new)
    said = _encode({"id": job_id, "new": is_new})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(said)),
        (b"location", b"%s%s/%d" % (_quoted(head.scope.get("root_path", "")), SUBMIT.encode(), job_id)),
    ]
    await answer.whole(201 if is_new else 200, headers, said)


def _quoted(path: str) -> bytes:
    """The path that the API is mounted at, which may hold what a client wrote, as a header may have it."""
    return quote(path).encode() if path else b""


def operation() -> dict[str, Any]:
    """The description of the route in the OpenAPI document, but for its refusals."""
    submitted = {"application/json": {"schema": {"$ref": "#/components/schemas/Submitted"}}}
    submission = {"application/json": {"schema": {"$ref": "#/components/schemas/Submission"}}}
    return {
        "tags": ["jobs"],
        "summary": "Submit",
        "description": "Put one job in its queue; it is durable when this answers.",
        "operationId": "submit_api_v1_jobs_post",
        "parameters": [
            {
                "name": "Idempotency-Key", "in": "header", "required": False,
                "description": "Two submits with one key are one job; the same as the field `key`, in UTF-8.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            }
        ],
        "requestBody": {"required": True, "content": submission},
        "responses": {
            "201": {"description": "Successful Response", "content": submitted},
            "200": {"description": "The key names a job that was there already.", "content": submitted},
        },
    }  # fmt: skip
