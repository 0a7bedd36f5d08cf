"""Errors of the worker's own calls: which can be mended from outside, whose they are, and what to do."""

from typing import Final
from uuid import uuid4

import psycopg

from faultline.errors import (
    FaultlineError,
    LeaseLost,
    NotAllowed,
    NotAuthenticated,
    OutcomeUnknown,
    PermissionDenied,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
)
from faultline.lease import Lease

FINAL: Final = (LeaseLost, OutcomeUnknown, NotAuthenticated, NotAllowed)
"""Answers, and refusals of the worker itself: waiting changes none of them."""

OF_ALL: Final = (PermissionDenied, SchemaMissing, SchemaOutdated, SchemaTooNew)

WRAPAROUND: Final = ("wraparound", "new XIDs", "new MultiXactIds")


NO_ROW_TELLS: Final = (
    "no row tells what became of it: it succeeded in a queue that keeps no successes, or a failover lost "
    "its claim"
)
"""What can be said of a lease of which there is no trace."""

NO_JOB: Final = 2**62


def nobodys() -> Lease:
    """A lease that no database has granted: a verb that refuses it works."""
    return Lease(NO_JOB, 1, uuid4(), 0.0, 0.0)


def can_be_mended(trouble: BaseException) -> bool:
    """Whether the same call may succeed once the database was put in order: it is worth waiting for."""
    return isinstance(trouble, FaultlineError | psycopg.Error) and not isinstance(trouble, FINAL)


def is_of_all(trouble: BaseException) -> bool:
    """Whether every call like this one meets it, whichever job it is about."""
    return isinstance(trouble, OF_ALL) or (_state(trouble) == "54000" and _is_wraparound(trouble))


def is_of_a_bound(trouble: BaseException) -> bool:
    """Whether a constraint has refused it by its name: no trigger and no damaged row speaks like that."""
    fault = trouble.__cause__
    return isinstance(fault, psycopg.errors.CheckViolation) and bool(fault.diag.constraint_name)


def told(trouble: BaseException) -> str:
    """The trouble in a line, with what to do about it."""
    state = _state(trouble)
    said = str(trouble).strip().partition("\n")[0] or type(trouble).__name__
    if isinstance(trouble, PermissionDenied):
        said = said.partition(";")[0]
    code = f" (SQLSTATE {state})" if state else ""
    return f"{said}{code}; {_remedy(trouble, state)}"


def _remedy(trouble: BaseException, state: str) -> str:
    if isinstance(trouble, PermissionDenied):
        return (
            "the worker's role needs the rights of faultline_worker and faultline_watchdog: grant it both, "
            "and run `faultline roles create` if the rights of these groups were changed"
        )
    if isinstance(trouble, OF_ALL):
        return "run `faultline migrate` with the version that the workers run"
    if state.startswith("54") and _is_wraparound(trouble):
        return "the server takes no writes until its oldest tables are vacuumed, as its own hint says"
    if state.startswith("54"):
        return "a limit of the server was reached: its log says which"
    if state.startswith(("22", "23", "44", "P0")):
        return "look for a trigger, a rule or a constraint that was added to the tables of faultline"
    if state.startswith("XX"):
        return "look at the server's log, and check the database with pg_amcheck"
    return "look at the server's log"


def _is_wraparound(trouble: BaseException) -> bool:
    return any(word in str(trouble) for word in WRAPAROUND)


def _state(trouble: BaseException) -> str:
    """The SQLSTATE behind an error, where the database has given one."""
    fault = trouble if isinstance(trouble, psycopg.Error) else trouble.__cause__
    return (fault.sqlstate or "") if isinstance(fault, psycopg.Error) else ""
