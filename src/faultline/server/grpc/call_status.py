"""A refusal as gRPC sends it: a status, a code for programs, an id for the log; never SQL or an address."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from faultline import errors
from faultline.rpc.v1 import problem_pb2
from faultline.server.grpc.messages import refusal_message
from faultline.server.outage_report import outage_mark
from faultline.server.problems import NO_ANSWER, UNFORESEEN, ProblemKind, RequestRefused, kind_of, safe_text
from faultline.telemetry import scrub

log = logging.getLogger("faultline.remote")

DETAILS: Final = "grpc-status-details-bin"

# The texts of these errors name servers, roles or databases: they stay in the log.
_FIXED: Final[dict[type[errors.FaultlineError], str]] = {
    errors.OutcomeUnknown: "its answer was lost, and it may have been done; look before you repeat it",
    errors.DatabaseError: "the database cannot serve this now; nothing is lost, ask again in a moment",
}


class CallProblem(NamedTuple):
    """The text of an error for a caller."""

    kind: ProblemKind
    problem: problem_pb2.Problem
    more: tuple[Message, ...] = ()


def told_of(error: BaseException) -> CallProblem:
    """The text of an error; for an unexpected one, only its id."""
    kind, id = kind_of(error), secrets.token_hex(8)
    if isinstance(error, RequestRefused):
        return _told(kind, error.detail or kind.title, id)
    if kind is UNFORESEEN:
        log.error("a call failed unexpectedly (id %s)", id, exc_info=error)
        return _told(kind, f"something went wrong here; the server's log says what, under {id}", id)
    if isinstance(error, errors.FaultlineError):
        return _told_of_ours(error, kind, id)
    if kind is NO_ANSWER:
        return _told(kind, "the database did not answer in time, and it may have been done", id)
    return _told(kind, "the database could not do it now, and it was not done; ask again in a moment", id)


def _told_of_ours(error: errors.FaultlineError, kind: ProblemKind, id: str) -> CallProblem:
    said = next((words for ours, words in _FIXED.items() if isinstance(error, ours)), None)
    if said is not None:
        log.warning("a call was not served (id %s): %s", id, scrub(str(error)), extra=outage_mark(error))
    more = (refusal_message(error),) if isinstance(error, errors.LeaseLost) else ()
    return _told(kind, said or str(error), id, more)


def _told(kind: ProblemKind, message: str, id: str, more: tuple[Message, ...] = ()) -> CallProblem:
    return CallProblem(kind, problem_pb2.Problem(code=kind.code, message=safe_text(message), id=id), more)


async def abort_with_problem(
    context: grpc.aio.ServicerContext[Any, Any], error: BaseException
) -> grpc.aio.AbortError:
    """Answer a call with the text of an error; the exception that it returns has to end the call."""
    kind, problem, more = told_of(error)
    code = grpc.StatusCode[kind.grpc]
    status = problem_pb2.Status(code=code.value[0], message=problem.message)
    for detail in (problem, *more):
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    try:
        # In the text as well: a client without a tool for the details still sees code and id.
        await context.abort(
            code,
            f"{problem.message} [{problem.code}, id {problem.id}]",
            ((DETAILS, status.SerializeToString()),),
        )
    except grpc.aio.AbortError as aborted:
        return aborted
    raise AssertionError("abort always raises")


@asynccontextmanager
async def answering(context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[None]:
    """An error in the block ends the call with a named refusal.

    gRPC's library keeps the exception of an abort with the call. Its traceback would keep the frames of
    the call, and its message, until the collector of cycles runs. So the traceback is dropped here, and
    the frames added on the way out are dropped once the exception has arrived.
    """
    try:
        yield
        return
    except grpc.aio.AbortError as error:
        aborted = error
    except Exception as error:
        aborted = await abort_with_problem(context, error)
        forget(error)
    forget(aborted)
    asyncio.get_running_loop().call_soon(forget, aborted)
    raise aborted


def forget(error: BaseException | None) -> None:
    """Drop the frames of an error and of its causes."""
    while error is not None:
        error.__traceback__ = None
        before, error.__context__, error.__cause__ = error.__cause__ or error.__context__, None, None
        error = before
