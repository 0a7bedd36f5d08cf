"""A refusal as HTTP sends it: application/problem+json."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from faultline import errors
from faultline.server.problems import UNFORESEEN, ProblemKind, RequestRefused, kind_of, safe_text

CONTENT_TYPE: Final = "application/problem+json"

_SAYS_NOTHING: Final = (errors.DatabaseError, errors.NotAuthenticated, errors.OutcomeUnknown)
"""Errors with texts that name servers, roles or databases, or help to guess keys: they stay in the log."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal as it is sent."""

    kind: ProblemKind
    detail: str
    retry_after: int | None = None
    allow: str | None = None

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
        told = {"content-type": CONTENT_TYPE, "content-length": str(size)}
        if self.retry_after is not None:
            told["retry-after"] = str(self.retry_after)
        if self.allow is not None:
            told["allow"] = self.allow
        if self.kind.status == 401:
            told["www-authenticate"] = 'Bearer realm="faultline"'
        return [(name.encode(), value.encode("latin-1", "replace")) for name, value in told.items()]


def problem_of(error: BaseException) -> Problem:
    """The text of an error for a client; for an unexpected one, only its id."""
    kind = kind_of(error)
    if isinstance(error, RequestRefused):
        return Problem(kind, safe_text(error.detail), error.retry_after, error.allow)
    retry_after = 1 if kind.status in (429, 503) else None
    if kind is UNFORESEEN or isinstance(error, _SAYS_NOTHING) or not isinstance(error, errors.FaultlineError):
        return Problem(kind, "", retry_after)
    return Problem(kind, safe_text(str(error)), retry_after)
