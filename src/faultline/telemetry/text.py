"""Text made safe to show: in a terminal, in a log line, in a row."""

import re
from itertools import groupby
from typing import Final

from faultline.errors import FaultlineError
from faultline.telemetry.frames import frames_of

ERROR_BYTES_MAX: Final = 8_192
_SUMMARY_BYTES_MAX: Final = 6_144
_CAUSES_MAX: Final = 5

# C0 and C1 controls, the marks that reorder text, invisible joiners, line separators, lone surrogates.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_NOT_TEXT: Final = re.compile("[\x00\ud800-\udfff]")

_WORD: Final = re.compile(r"[^\s'\"]+")
_USER: Final = re.compile(r"://[^:/?#@]*:")
"""The user of a URL, up to the colon before its password."""

_SECRETS: Final = (
    (
        re.compile(
            r"(\b(?:password|passwd|sslpassword)\b['\"]?\s*[=:]\s*)('[^']*'|\"[^\"]*\"|[^\s,;&)]+)",
            re.IGNORECASE,
        ),
        r"\1***",
    ),
    # An API key, also one that was copied badly; its id may be shown.
    (re.compile(r"(flk_(?:[0-9a-f]{12}_)?)[A-Za-z0-9_-]{8,}"), r"\1***"),
)


def printable(text: str) -> str:
    """Text with every character that moves the cursor, hides or reorders text spelled out.

    >>> printable("red\\x1b[31m, new\\nline")
    'red\\\\x1b[31m, new\\\\nline'
    """
    return _UNSAFE.sub(_spelled, text)


def _spelled(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def scrub(text: str) -> str:
    """Text without the passwords a DSN or a keyword may carry, and without API keys.

    >>> scrub("cannot reach postgresql://app:secret@db/shop")
    'cannot reach postgresql://app:***@db/shop'
    """
    if "://" in text:
        text = _WORD.sub(_without_password, text)
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def _without_password(word: re.Match[str]) -> str:
    """A word in which the password of a URL is hidden, in one pass."""
    text = word[0]
    end = text.rfind("@")
    user = _USER.search(text, 1, end) if end > 0 else None
    return text if user is None else f"{text[: user.end()]}***{text[end:]}"


def describe_error(error: BaseException) -> str:
    """An error as it is kept with the attempt: a line that says what, its notes, then where, in 8 kB at most.

    Where: the most recent call first, the user's own frames before those of libraries. Long texts keep
    their head and their tail. If the exception's own methods fail, there is still an answer, and it is
    text that PostgreSQL can hold.

    >>> describe_error(ValueError("no such order"))
    'ValueError: no such order'
    """
    # Repeated tries leave a chain of the same error at the same place: one of them is enough.
    parts = [part for part, _ in groupby(_with_frames(one) for one in _chain(error))]
    return shortened(scrub("\ncaused by ".join(parts)), ERROR_BYTES_MAX)


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and len(chain) < _CAUSES_MAX:
        chain.append(following)
        if isinstance(following, BaseExceptionGroup):
            following = following.exceptions[0]
        else:
            hidden = following.__suppress_context__
            following = following.__cause__ or (None if hidden else following.__context__)
    return chain


def _with_frames(error: BaseException) -> str:
    frames = frames_of(error.__traceback__, meant=isinstance(error, FaultlineError))
    return "\n".join([_summary(error), *_notes(error), *frames])


def _notes(error: BaseException) -> list[str]:
    """What `add_note` has added to an exception."""
    notes = getattr(error, "__notes__", None)
    return [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []


def _summary(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        said = str(error)
    except Exception as mishap:
        said = f"(its text could not be read: {type(mishap).__name__})"
    return f"{kind}: {shortened(said, _SUMMARY_BYTES_MAX)}" if said else kind


def shortened(text: str, bytes_max: int) -> str:
    """Text of so many bytes at most, cut in its middle, that PostgreSQL can hold.

    >>> shortened("head " + "x" * 1_000 + " tail", 90).split("\\n")[1]
    '... shortened from 1,010 characters ...'
    """
    # Cut before cleaning: 50 MB of text should not be scanned for eight kilobytes.
    kept = text if len(text) <= 2 * bytes_max else text[:bytes_max] + text[-bytes_max:]
    data = _NOT_TEXT.sub(_spelled, kept).encode()
    if len(data) <= bytes_max:
        return data.decode()
    middle = f"\n... shortened from {len(text):,} characters ...\n"
    head_bytes = bytes_max * 5 // 8
    tail_bytes = bytes_max - head_bytes - len(middle)
    return data[:head_bytes].decode(errors="ignore") + middle + data[-tail_bytes:].decode(errors="ignore")
