"""Submit: the busiest routes, as plain functions of a body."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from faultline.access import Caller
from faultline.api.answers import Answer
from faultline.api.asked import Asked
from faultline.api.desk import Desk
from faultline.api.problems import OVERLOADED, Refused
from faultline.api.submission import decode_many, decode_one
from faultline.server.pacing import LARGE_BYTES, Pacing
from faultline.telemetry.tracing import context_of

SUBMIT: Final = "/api/v1/jobs"
SUBMIT_MANY: Final = "/api/v1/jobs/batch"

_encode: Final = msgspec.json.Encoder().encode


async def submit_one(desk: Desk, asked: Asked, caller: Caller, body: bytes, answer: Answer) -> None:
    """Enqueue one job; 201 for a new one, 200 when its key names one that was there."""
    caller.require("enqueue")
    key = asked.job_key
    if len(body) <= LARGE_BYTES:
        new = decode_one(body, key)
    else:
        new = await Pacing.of_this_loop().one(lambda: decode_one(body, key), len(body))
        caller = await asked.scope["state"]["who"]()  # its turn may have come late
    caller.require("enqueue", new.queue)
    if (parent := asked.headers.get(b"traceparent")) is not None:
        trace = context_of(parent, asked.headers.get(b"tracestate"))
        new = msgspec.structs.replace(new, trace=trace)
    if desk.gatherer.is_full:
        raise Refused(OVERLOADED, "too many jobs wait to be stored", 1)
    job_id, is_new = await desk.gatherer.add(new)
    said = _encode({"id": job_id, "new": is_new})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(said)),
        (b"location", b"%s%s/%d" % (asked.scope.get("root_path", "").encode(), SUBMIT.encode(), job_id)),
    ]
    await answer.whole(201 if is_new else 200, headers, said)


async def submit_many(
    desk: Desk, caller: Caller, body: bytes, look: Callable[[], Awaitable[Caller]]
) -> list[int]:
    """Enqueue many jobs, all of them or none; their ids in the order given."""
    caller.require("enqueue")
    asked = decode_many(body, desk.config.limits.batch_jobs_max)
    jobs = await Pacing.of_this_loop().all_of(asked, len(body))
    if len(body) > LARGE_BYTES:
        caller = await look()  # its turn may have come late
    for queue in {new.queue for new in jobs}:
        caller.require("enqueue", queue)
    async with asyncio.timeout(desk.config.limits.answer_seconds_max):
        return await desk.sender.aenqueue_many(jobs)
