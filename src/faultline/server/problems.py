"""Every kind of refusal, once: its code, its HTTP and its gRPC status, its title and its remedy."""

from dataclasses import dataclass
from typing import Final, Literal

import psycopg

from faultline import errors
from faultline.store.session import is_of_this_moment
from faultline.telemetry import printable, scrub

TEXT_CHARS_MAX: Final = 1_000

GrpcStatus = Literal[
    "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "UNIMPLEMENTED", "UNAVAILABLE",
    "UNKNOWN", "INTERNAL",
]  # fmt: skip
"""Names of `grpc.StatusCode`: the library of gRPC is not there on a server for HTTP alone."""


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem: the same code always has the same statuses, title and remedy."""

    code: str
    status: int
    """The HTTP status; from 500 on, the fault is the server's."""
    grpc: GrpcStatus
    title: str
    what_to_do: str


class RequestRefused(Exception):
    """A request or a call is refused for a reason that only a server has."""

    def __init__(
        self, kind: ProblemKind, detail: str = "", retry_after: int | None = None, allow: str | None = None
    ) -> None:
        super().__init__(kind.code, detail)
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after
        self.allow = allow
        """The methods that an HTTP path takes."""


# fmt: off
MALFORMED: Final = ProblemKind(
    "malformed", 400, "INVALID_ARGUMENT", "The request cannot be read",
    "Correct it; see /api/v1/openapi.json.",
)
KEY_IN_URL: Final = ProblemKind(
    "key_in_url", 400, "INVALID_ARGUMENT", "An API key does not belong in a URL",
    "URLs end up in logs: revoke that key, and send the next one as `Authorization: Bearer ...`.",
)
NO_DEADLINE: Final = ProblemKind(
    "no_deadline", 400, "INVALID_ARGUMENT", "The call has no deadline", "Give it one, such as 30 s."
)
PROTOCOL: Final = ProblemKind(
    "protocol", 400, "FAILED_PRECONDITION", "That protocol is not spoken here", "Use the version it names."
)
NOT_JSON: Final = ProblemKind(
    "not_json", 415, "INVALID_ARGUMENT", "Only JSON is taken",
    "Send `Content-Type: application/json`, and no Content-Encoding.",
)
REVOKED: Final = ProblemKind(
    "certificate_revoked", 401, "UNAUTHENTICATED", "This certificate opens nothing any more",
    "It was revoked; ask for another.",
)
QUEUE_NEEDED: Final = ProblemKind(
    "queue_needed", 403, "PERMISSION_DENIED", "This key is for some queues only",
    "Name one of its queues with ?queue=..., or ask job by job.",
)
CROSS_ORIGIN: Final = ProblemKind(
    "cross_origin", 403, "PERMISSION_DENIED", "A page from elsewhere may not ask this",
    "Ask from the same origin, or from no browser.",
)
NO_SUCH_PAGE: Final = ProblemKind(
    "no_such_page", 404, "UNIMPLEMENTED", "There is nothing here",
    "See /api/v1/openapi.json for what there is.",
)
NO_SUCH_QUEUE: Final = ProblemKind(
    "not_found", 404, "NOT_FOUND", "There is no such queue",
    "Correct the name; GET /api/v1/queues lists them.",
)
NO_SUCH_LIMIT: Final = ProblemKind(
    "not_found", 404, "NOT_FOUND", "There is no such limit",
    "Correct the name; GET /api/v1/limits lists them.",
)
NO_SUCH_SCHEDULE: Final = ProblemKind(
    "not_found", 404, "NOT_FOUND", "There is no such schedule",
    "Correct the name; GET /api/v1/schedules lists them.",
)
WRONG_METHOD: Final = ProblemKind(
    "wrong_method", 405, "UNIMPLEMENTED", "Not with this method", "See the Allow header."
)
WRONG_HOST: Final = ProblemKind(
    "wrong_host", 421, "FAILED_PRECONDITION", "This server is not known by that name",
    "Use the address it listens on, or start it with --allow-host NAME.",
)
COUNT_CHANGED: Final = ProblemKind(
    "count_changed", 409, "FAILED_PRECONDITION", "Not as many jobs fit as were confirmed",
    "Look at the preview again, and confirm its count.",
)
BUSY: Final = ProblemKind(
    "busy", 409, "FAILED_PRECONDITION", "It is already under way", "Wait until it has ended."
)
TOO_SLOW: Final = ProblemKind(
    "too_slow", 408, "DEADLINE_EXCEEDED", "The request did not arrive in time", "Send it again, faster."
)
TOO_LARGE: Final = ProblemKind(
    "too_large", 413, "RESOURCE_EXHAUSTED", "The body is too large",
    "Send less at once, or store it elsewhere and pass a reference.",
)
HEAD_TOO_LARGE: Final = ProblemKind(
    "head_too_large", 431, "RESOURCE_EXHAUSTED", "The headers are too large",
    "Send fewer and shorter headers.",
)
TOO_MANY: Final = ProblemKind(
    "too_many", 429, "RESOURCE_EXHAUSTED", "Too many requests",
    "Wait as long as Retry-After says, and ask again.",
)
OVERLOADED: Final = ProblemKind(
    "overloaded", 503, "RESOURCE_EXHAUSTED", "The server has its hands full",
    "Wait as long as Retry-After says, and ask again.",
)
STOPPING: Final = ProblemKind(
    "stopping", 503, "UNAVAILABLE", "The server is stopping",
    "Ask again: another one answers, or this one soon.",
)
NO_ANSWER: Final = ProblemKind(
    "no_answer", 504, "UNAVAILABLE", "The database did not answer in time",
    "What was asked may or may not have been done. Look before you repeat it; with a key, repeating is safe.",
)
UNFORESEEN: Final = ProblemKind(
    "unforeseen", 500, "INTERNAL", "Something went wrong here",
    "Look for the request_id in the server's log; it says what happened.",
)

_GONE: Final = "Check the id; what has ended is pruned after its retention."
_WAIT: Final = "Nothing is lost. Ask again in a moment; /readyz says when it is back."
_MIGRATE: Final = "Run `faultline migrate` with the release that this server is of."

TABLE: Final[dict[type[errors.FaultlineError], ProblemKind]] = {
    errors.BadArguments: ProblemKind(
        "bad_arguments", 422, "INVALID_ARGUMENT", "The arguments do not fit",
        "Correct the field that is named.",
    ),
    errors.BadName: ProblemKind(
        "bad_name", 422, "INVALID_ARGUMENT", "That cannot be a name",
        "Choose a name within the rule that is quoted.",
    ),
    errors.OutOfBounds: ProblemKind(
        "out_of_bounds", 422, "INVALID_ARGUMENT", "A value lies past its limit",
        "Choose one inside the limit.",
    ),
    errors.BadDocument: ProblemKind(
        "bad_document", 422, "INVALID_ARGUMENT", "That cannot be kept as JSON",
        "Change the value that is named.",
    ),
    errors.InputError: ProblemKind(
        "bad_input", 422, "INVALID_ARGUMENT", "That is outside the rules", "Correct the field that is named."
    ),
    errors.UnknownTask: ProblemKind("unknown_task", 404, "NOT_FOUND", "No such task", "Correct the name."),
    errors.QueueFull: ProblemKind(
        "queue_full", 429, "RESOURCE_EXHAUSTED", "The queue holds as many due jobs as it may",
        "Nothing was enqueued. Ask again when workers have caught up.",
    ),
    errors.KeyConflict: ProblemKind(
        "key_conflict", 409, "ALREADY_EXISTS", "The key names another request",
        "Send the same task and args, or use another key.",
    ),
    errors.LeaseLost: ProblemKind(
        "lease_lost", 409, "FAILED_PRECONDITION", "The job is no longer yours",
        "Stop, and let the newer attempt finish.",
    ),
    errors.OutcomeUnknown: ProblemKind(
        "outcome_unknown", 503, "UNKNOWN", "It is unknown whether it was done",
        "Look before you repeat it; with an Idempotency-Key, repeating is safe.",
    ),
    errors.JobNotFound: ProblemKind("not_found", 404, "NOT_FOUND", "There is no such thing", _GONE),
    errors.WrongState: ProblemKind(
        "wrong_state", 409, "FAILED_PRECONDITION", "Not in this state",
        "See what is allowed in the state it names.",
    ),
    errors.WaitTimeout: ProblemKind(
        "wait_timeout", 408, "DEADLINE_EXCEEDED", "The job has not ended yet", "Wait again."
    ),
    errors.SchemaMissing: ProblemKind(
        "schema_missing", 503, "UNAVAILABLE", "The database is not ready for Faultline", _MIGRATE
    ),
    errors.SchemaOutdated: ProblemKind(
        "schema_outdated", 503, "UNAVAILABLE", "The database is older than this server", _MIGRATE
    ),
    errors.SchemaTooNew: ProblemKind(
        "schema_too_new", 503, "UNAVAILABLE", "The database is newer than this server", "Upgrade this server."
    ),
    errors.PermissionDenied: ProblemKind(
        "permission_denied", 503, "UNAVAILABLE", "The server's own role may not do this",
        "Grant it what `faultline doctor --strict` names.",
    ),
    errors.ReadOnlyServer: ProblemKind(
        "read_only", 503, "UNAVAILABLE", "The database takes no writes now", _WAIT
    ),
    errors.DatabaseError: ProblemKind(
        "database_unavailable", 503, "UNAVAILABLE", "The database cannot be reached", _WAIT
    ),
    errors.NotAuthenticated: ProblemKind(
        "not_authenticated", 401, "UNAUTHENTICATED", "Who are you?",
        "Send an API key: `Authorization: Bearer flk_...`. One that is wrong, expired or revoked opens "
        "nothing.",
    ),
    errors.NotAllowed: ProblemKind(
        "not_allowed", 403, "PERMISSION_DENIED", "Your key does not allow this",
        "Ask for a key with the scope and queue this needs.",
    ),
}
"""Faultline's errors and their problems; the nearest class counts."""
# fmt: on


def kind_of(error: BaseException) -> ProblemKind:
    """The kind of problem that an error is."""
    if isinstance(error, RequestRefused):
        return error.kind
    for cls in type(error).__mro__:
        if cls in TABLE:
            return TABLE[cls]
    if isinstance(error, psycopg.Error) and is_of_this_moment(error):
        return TABLE[errors.DatabaseError]
    return NO_ANSWER if isinstance(error, TimeoutError) else UNFORESEEN


def safe_text(text: str) -> str:
    """A text for a client: in one line, bounded, without passwords and control characters."""
    return printable(scrub(" ".join(text[: 4 * TEXT_CHARS_MAX].split())))[:TEXT_CHARS_MAX]
