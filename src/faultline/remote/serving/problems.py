"""How a call says no: a status, a code for programs, an id for the log; never SQL, an address or a trace."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import grpc
import psycopg
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from faultline import errors
from faultline.remote.serving.translate import refusal_message
from faultline.rpc.v1 import problem_pb2
from faultline.server.outage import outage_mark
from faultline.store.line import is_of_this_moment
from faultline.telemetry import printable, scrub

log = logging.getLogger("faultline.remote")

DETAILS: Final = "grpc-status-details-bin"
CHARS_MAX: Final = 1_000


class Kind(NamedTuple):
    """A kind of problem: the same code always comes with the same status."""

    status: grpc.StatusCode
    code: str


class TurnedAway(Exception):
    """A call that is not carried out, for a reason that only a server has."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(kind.code, message)
        self.kind = kind
        self.message = message


MALFORMED: Final = Kind(grpc.StatusCode.INVALID_ARGUMENT, "malformed")
NO_DEADLINE: Final = Kind(grpc.StatusCode.INVALID_ARGUMENT, "no_deadline")
PROTOCOL: Final = Kind(grpc.StatusCode.FAILED_PRECONDITION, "protocol")
TOO_MANY: Final = Kind(grpc.StatusCode.RESOURCE_EXHAUSTED, "too_many")
TOO_LARGE: Final = Kind(grpc.StatusCode.RESOURCE_EXHAUSTED, "too_large")
TOO_SLOW: Final = Kind(grpc.StatusCode.DEADLINE_EXCEEDED, "too_slow")
STOPPING: Final = Kind(grpc.StatusCode.UNAVAILABLE, "stopping")
NO_ANSWER: Final = Kind(grpc.StatusCode.UNAVAILABLE, "no_answer")
UNFORESEEN: Final = Kind(grpc.StatusCode.INTERNAL, "unforeseen")

OURS: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN})
"""Statuses by which a server says that the fault is its own."""

_AWAY: Final = Kind(grpc.StatusCode.UNAVAILABLE, "database_unavailable")

TABLE: Final[dict[type[errors.FaultlineError], Kind]] = {
    errors.BadArguments: Kind(grpc.StatusCode.INVALID_ARGUMENT, "bad_arguments"),
    errors.BadName: Kind(grpc.StatusCode.INVALID_ARGUMENT, "bad_name"),
    errors.OutOfBounds: Kind(grpc.StatusCode.INVALID_ARGUMENT, "out_of_bounds"),
    errors.BadDocument: Kind(grpc.StatusCode.INVALID_ARGUMENT, "bad_document"),
    errors.InputError: Kind(grpc.StatusCode.INVALID_ARGUMENT, "bad_input"),
    errors.KeyConflict: Kind(grpc.StatusCode.ALREADY_EXISTS, "key_conflict"),
    errors.LeaseLost: Kind(grpc.StatusCode.FAILED_PRECONDITION, "lease_lost"),
    errors.OutcomeUnknown: Kind(grpc.StatusCode.UNKNOWN, "outcome_unknown"),
    errors.JobNotFound: Kind(grpc.StatusCode.NOT_FOUND, "not_found"),
    errors.WrongState: Kind(grpc.StatusCode.FAILED_PRECONDITION, "wrong_state"),
    errors.SchemaMissing: Kind(grpc.StatusCode.UNAVAILABLE, "schema_missing"),
    errors.SchemaOutdated: Kind(grpc.StatusCode.UNAVAILABLE, "schema_outdated"),
    errors.SchemaTooNew: Kind(grpc.StatusCode.UNAVAILABLE, "schema_too_new"),
    errors.PermissionDenied: Kind(grpc.StatusCode.UNAVAILABLE, "permission_denied"),
    errors.ReadOnlyServer: Kind(grpc.StatusCode.UNAVAILABLE, "read_only"),
    errors.DatabaseError: _AWAY,
    errors.NotAuthenticated: Kind(grpc.StatusCode.UNAUTHENTICATED, "not_authenticated"),
    errors.NotAllowed: Kind(grpc.StatusCode.PERMISSION_DENIED, "not_allowed"),
}
"""From what Faultline raises to what gRPC says; the nearest class counts."""

# Their own words name servers, roles or databases: those stay in the log.
_FIXED: Final[dict[type[errors.FaultlineError], str]] = {
    errors.OutcomeUnknown: "its answer was lost, and it may have been done; look before you repeat it",
    errors.DatabaseError: "the database cannot serve this now; nothing is lost, ask again in a moment",
}


class Told(NamedTuple):
    """What a caller is told of an error."""

    kind: Kind
    problem: problem_pb2.Problem
    more: tuple[Message, ...] = ()


def kind_of(error: BaseException) -> Kind:
    """The kind of problem an error is."""
    if isinstance(error, TurnedAway):
        return error.kind
    for kind in type(error).__mro__:
        if kind in TABLE:
            return TABLE[kind]
    if isinstance(error, psycopg.Error) and is_of_this_moment(error):
        return _AWAY
    return NO_ANSWER if isinstance(error, TimeoutError) else UNFORESEEN


def status_of(kind: Kind) -> int:
    """Whose fault it is, as HTTP counts: from 500 on, ours."""
    return 503 if kind.status in OURS else 400


def told_of(error: BaseException) -> Told:
    """What to say of an error; of one nobody foresaw, no more than its id."""
    id = secrets.token_hex(8)
    if isinstance(error, TurnedAway):
        return _told(error.kind, error.message, id)
    for kind in type(error).__mro__:
        if kind in TABLE:
            return _told_of_ours(error, TABLE[kind], id)
    if isinstance(error, psycopg.Error) and is_of_this_moment(error):
        return _told(
            _AWAY, "the database could not do it now, and it was not done; ask again in a moment", id
        )
    if isinstance(error, TimeoutError):
        return _told(NO_ANSWER, "the database did not answer in time, and it may have been done", id)
    log.error("a call failed in a way nobody foresaw (id %s)", id, exc_info=error)
    return _told(UNFORESEEN, f"something went wrong here; the server's log says what, under {id}", id)


def _told_of_ours(error: BaseException, kind: Kind, id: str) -> Told:
    said = next((words for ours, words in _FIXED.items() if isinstance(error, ours)), None)
    if said is not None:
        log.warning("a call was not served (id %s): %s", id, scrub(str(error)), extra=outage_mark(error))
    more = (refusal_message(error),) if isinstance(error, errors.LeaseLost) else ()
    return _told(kind, said or str(error), id, more)


def _told(kind: Kind, message: str, id: str, more: tuple[Message, ...] = ()) -> Told:
    safe = printable(scrub(" ".join(message[: 4 * CHARS_MAX].split())))[:CHARS_MAX]
    return Told(kind, problem_pb2.Problem(code=kind.code, message=safe, id=id), more)


async def say_no(context: grpc.aio.ServicerContext[Any, Any], error: BaseException) -> grpc.aio.AbortError:
    """Answer a call with what is to be said of an error; what is returned has to end it."""
    kind, problem, more = told_of(error)
    status = problem_pb2.Status(code=kind.status.value[0], message=problem.message)
    for detail in (problem, *more):
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    try:
        # Beside each other, so that who has no tool for the details still sees code and id.
        await context.abort(
            kind.status,
            f"{problem.message} [{problem.code}, id {problem.id}]",
            ((DETAILS, status.SerializeToString()),),
        )
    except grpc.aio.AbortError as aborted:
        return aborted
    raise AssertionError("abort always raises")


@asynccontextmanager
async def answering(context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[None]:
    """Whatever goes wrong in the block ends the call with a named refusal.

    gRPC's library keeps the exception of an abort with the call. With its traceback that would keep the
    frames of the call, its message too, until the collector of cycles comes by. So the traceback is dropped
    here, and what is added on the way out once it has arrived.
    """
    try:
        yield
        return
    except grpc.aio.AbortError as error:
        aborted = error
    except Exception as error:
        aborted = await say_no(context, error)
        forget(error)
    forget(aborted)
    asyncio.get_running_loop().call_soon(forget, aborted)
    raise aborted


def forget(error: BaseException | None) -> None:
    """Let go of the frames that an error, and those it came from, passed through."""
    while error is not None:
        error.__traceback__ = None
        before, error.__context__, error.__cause__ = error.__cause__ or error.__context__, None, None
        error = before
