"""What a refused request is told: application/problem+json, from one table of errors."""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import psycopg

from faultline import errors
from faultline.store.line import is_of_this_moment
from faultline.telemetry import printable, scrub

CONTENT_TYPE: Final = "application/problem+json"
DETAIL_CHARS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: the same code always has the same status, title and remedy."""

    status: int
    code: str
    title: str
    what_to_do: str


class Refused(Exception):
    """A request that is not carried out, for a reason that only HTTP has."""

    def __init__(self, kind: Kind, detail: str = "", retry_after: int | None = None) -> None:
        super().__init__(kind.code, detail)
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after


# Refusals that only a server makes.
BODY_TOO_LARGE: Final = Kind(
    413,
    "body_too_large",
    "The body is too large",
    "Send less at once, or store it elsewhere and pass a reference.",
)
HEAD_TOO_LARGE: Final = Kind(
    431, "head_too_large", "The headers are too large", "Send fewer and shorter headers."
)
REVOKED: Final = Kind(
    401, "certificate_revoked", "This certificate opens nothing any more", "It was revoked; ask for another."
)
TOO_SLOW: Final = Kind(408, "too_slow", "The request did not arrive in time", "Send it again, faster.")
NOT_JSON: Final = Kind(
    415, "not_json", "Only JSON is taken", "Send `Content-Type: application/json`, and no Content-Encoding."
)
MALFORMED: Final = Kind(
    400, "malformed", "The request cannot be read", "Correct it; see /api/v1/openapi.json."
)
KEY_IN_URL: Final = Kind(
    400, "key_in_url", "An API key does not belong in a URL",
    "URLs end up in logs: revoke that key, and send the next one as `Authorization: Bearer ...`.",
)  # fmt: skip
WRONG_HOST: Final = Kind(
    421, "wrong_host", "This server is not known by that name",
    "Use the address it listens on, or start it with --allow-host NAME.",
)  # fmt: skip
CROSS_ORIGIN: Final = Kind(
    403,
    "cross_origin",
    "A page from elsewhere may not ask this",
    "Ask from the same origin, or from no browser.",
)
TOO_MANY: Final = Kind(
    429, "too_many_requests", "Too many requests", "Wait as long as Retry-After says, and ask again."
)
OVERLOADED: Final = Kind(
    503, "overloaded", "The server has its hands full", "Wait as long as Retry-After says, and ask again."
)
STOPPING: Final = Kind(
    503, "stopping", "The server is stopping", "Ask again: another one answers, or this one soon."
)
NO_ANSWER: Final = Kind(
    504, "no_answer", "The database did not answer in time",
    "What was asked may or may not have been done. Look before you repeat it; with a key, repeating is safe.",
)  # fmt: skip
COUNT_CHANGED: Final = Kind(
    409,
    "count_changed",
    "Not as many jobs fit as were confirmed",
    "Look at the preview again, and confirm its count.",
)
QUEUE_NEEDED: Final = Kind(
    403,
    "queue_needed",
    "This key is for some queues only",
    "Name one of its queues with ?queue=..., or ask job by job.",
)
NO_SUCH_PAGE: Final = Kind(
    404, "no_such_page", "There is nothing here", "See /api/v1/openapi.json for what there is."
)
WRONG_METHOD: Final = Kind(405, "wrong_method", "Not with this method", "See the Allow header.")
BUSY: Final = Kind(409, "busy", "It is already under way", "Wait until it has ended.")
UNFORESEEN: Final = Kind(
    500,
    "unforeseen",
    "Something went wrong here",
    "Look for the request_id in the server's log; it says what happened.",
)

_GONE: Final = "Check the id; what has ended is pruned after its retention."
_WAIT: Final = "Nothing is lost. Ask again in a moment; /readyz says when it is back."
_MIGRATE: Final = "Run `faultline migrate` with the release that this server is of."

TABLE: Final[dict[type[errors.FaultlineError], Kind]] = {
    errors.BadArguments: Kind(
        422, "bad_arguments", "The arguments do not fit", "Correct the field that is named."
    ),
    errors.BadName: Kind(
        422, "bad_name", "That cannot be a name", "Choose a name within the rule that is quoted."
    ),
    errors.OutOfBounds: Kind(
        422, "out_of_bounds", "A value lies past its limit", "Choose one inside the limit."
    ),
    errors.BadDocument: Kind(
        422, "bad_document", "That cannot be kept as JSON", "Change the value that is named."
    ),
    errors.InputError: Kind(
        422, "bad_input", "That is outside the rules", "Correct the field that is named."
    ),
    errors.UnknownTask: Kind(404, "unknown_task", "No such task", "Correct the name."),
    errors.KeyConflict: Kind(
        409,
        "key_conflict",
        "The key names another request",
        "Send the same task and args, or use another key.",
    ),
    errors.LeaseLost: Kind(
        409, "lease_lost", "The job is no longer yours", "Stop, and let the newer attempt finish."
    ),
    errors.OutcomeUnknown: Kind(
        503,
        "outcome_unknown",
        "Nobody can tell whether it was done",
        "Look before you repeat it; with an Idempotency-Key, repeating is safe.",
    ),
    errors.JobNotFound: Kind(404, "not_found", "There is no such thing", _GONE),
    errors.WrongState: Kind(
        409, "wrong_state", "Not in this state", "See what is allowed in the state it names."
    ),
    errors.WaitTimeout: Kind(408, "wait_timeout", "The job has not ended yet", "Wait again."),
    errors.SchemaMissing: Kind(503, "schema_missing", "The database is not ready for Faultline", _MIGRATE),
    errors.SchemaOutdated: Kind(503, "schema_outdated", "The database is older than this server", _MIGRATE),
    errors.SchemaTooNew: Kind(
        503, "schema_too_new", "The database is newer than this server", "Upgrade this server."
    ),
    errors.PermissionDenied: Kind(
        503,
        "permission_denied",
        "The server's own role may not do this",
        "Grant it what `faultline doctor --strict` names.",
    ),
    errors.ReadOnlyServer: Kind(503, "read_only", "The database takes no writes now", _WAIT),
    errors.DatabaseError: Kind(503, "database_unavailable", "The database cannot be reached", _WAIT),
    errors.NotAuthenticated: Kind(
        401,
        "not_authenticated",
        "Who are you?",
        "Send an API key: `Authorization: Bearer flk_...`. One that is wrong, expired or revoked opens "
        "nothing.",
    ),
    errors.NotAllowed: Kind(
        403,
        "not_allowed",
        "Your key does not allow this",
        "Ask for a key with the scope and queue this needs.",
    ),
}
"""From what Faultline raises to what HTTP says; the nearest class counts."""

_SAYS_NOTHING: Final = (errors.DatabaseError, errors.NotAuthenticated, errors.OutcomeUnknown)
"""Errors whose own words name servers, roles or databases, or help to guess keys: they stay in the log."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal as it is sent."""

    kind: Kind
    detail: str
    retry_after: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def body(self, request_id: str) -> bytes:
        """The JSON document of RFC 9457, with our members."""
        return msgspec.json.encode(self.document(request_id))

    def document(self, request_id: str) -> dict[str, Any]:
        kind = self.kind
        return {
            "type": f"urn:faultline:problem:{kind.code}", "title": kind.title, "status": kind.status,
            "code": kind.code, "detail": self.detail or kind.title, "what_to_do": kind.what_to_do,
            "request_id": request_id,
        }  # fmt: skip

    def raw_headers(self, size: int) -> list[tuple[bytes, bytes]]:
        """The headers of the answer, its size among them."""
        told = {"content-type": CONTENT_TYPE, "content-length": str(size), **self.headers}
        if self.retry_after is not None:
            told["retry-after"] = str(self.retry_after)
        if self.kind.status == 401:
            told["www-authenticate"] = 'Bearer realm="faultline"'
        return [(name.encode(), value.encode("latin-1", "replace")) for name, value in told.items()]


def problem_of(error: BaseException) -> Problem:
    """What to tell a client of an error; of one nobody foresaw, no more than that."""
    if isinstance(error, Refused):
        return Problem(error.kind, _safe(error.detail), error.retry_after)
    if isinstance(error, TimeoutError) and not isinstance(error, errors.FaultlineError):
        return Problem(NO_ANSWER, "")
    for kind in type(error).__mro__:
        if kind in TABLE:
            said = "" if isinstance(error, _SAYS_NOTHING) else _safe(str(error))
            return Problem(TABLE[kind], said, 1 if TABLE[kind].status == 503 else None)
    if isinstance(error, psycopg.Error) and is_of_this_moment(error):
        return Problem(TABLE[errors.DatabaseError], "", 1)
    return Problem(UNFORESEEN, "")


def _safe(text: str) -> str:
    return printable(scrub(" ".join(text[: 4 * DETAIL_CHARS_MAX].split())))[:DETAIL_CHARS_MAX]
