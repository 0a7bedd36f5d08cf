"""The documents that JSON in PostgreSQL can hold, and the refusal of all others before they are sent.

Looking at every value costs more than encoding it. So the encoded bytes are searched for signs of
trouble first (scan.py), and only a suspicious document is walked, to find the place and name it.
"""

import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from faultline.args import model_hooks
from faultline.args.scan import BYTES_MAX, NUMBER_TOO_LARGE, OBJECTS_MAX, Scan, is_plain
from faultline.bounds import with_article
from faultline.errors import BadDocument

__all__ = ["BYTES_MAX", "DEPTH_MAX", "check_document", "encode_document", "encode_result"]

DEPTH_MAX: Final = 64
"""The deepest document: the outermost value is level 1, a scalar counts as a level too."""

NUMBER_MAX: Final = 10**308

WALK_BYTES_MAX: Final = 65_536
"""A longer document from elsewhere is not walked for the place of an error: the walk would cost too much."""

Place = tuple[()] | tuple[Any, Any]
"""The place of a value: the place around it, and the key or index there; None for the key itself."""

# Sets come out sorted: the same request has the same JSON in every process, and so the same key.
_sorted: Final = msgspec.json.Encoder(enc_hook=model_hooks.dump, order="deterministic")
_plain: Final = msgspec.json.Encoder(enc_hook=model_hooks.dump)

# msgspec takes 10 us to read 1e308 or 5e-324, for which float takes half of one: 20 KB of them took 30 ms.
_far: Final = msgspec.json.Decoder(float_hook=float)
_near: Final = msgspec.json.Decoder()


def encode_result(value: Any, task: str = "") -> str:
    """A handler's result as JSON text; refuses values that PostgreSQL could not keep.

    >>> encode_result({"sent": True})
    '{"sent":true}'
    >>> encode_result([1.5, float("nan")], task="charge")
    Traceback (most recent call last):
    faultline.errors.BadDocument: result of task charge: [1] is nan, which JSON does not have. Use None
    """
    if value is None:  # most handlers return nothing; a null would be walked for hidden NaNs
        return "null"
    return encode_document(value, f"result of task {task}" if task else "result").decode()


def encode_document(value: Any, subject: str) -> bytes:
    """Encode a value as compact JSON, or raise BadDocument with the subject and the place in it."""
    try:
        data = _encode(value)
    except Exception as error:
        raise _explain(value, subject, error) from None
    if len(data) > BYTES_MAX:
        raise _too_long(len(data), subject)
    if _is_suspicious(data, value):
        _check_walking(value, subject)
    if is_plain(data, DEPTH_MAX):
        return data
    scan = Scan(data)
    if wrong := scan.wrong_number() or _too_deep(scan):
        _check_walking(value, subject)
        raise BadDocument(f"{subject}: it {wrong}")
    _check_size(scan, subject)
    return data


def check_document(data: bytes, subject: str, kind: type = object) -> None:
    """Check JSON text that came from elsewhere, as `encode_document` checks the values that it encodes.

    The text itself goes on to the database: it keeps every digit of a number, as Python's floats do not.
    The cost is bounded by the length of the text: a server calls it for every document of a client.

    >>> check_document(b'{"order_id":7}', "args", dict)
    >>> check_document(b'[7]', "args", dict)
    Traceback (most recent call last):
    faultline.errors.BadDocument: args: it is a list, where a JSON object belongs
    """
    if len(data) > BYTES_MAX:
        raise _too_long(len(data), subject)
    scan = Scan(data)
    wrong = scan.wrong_number()
    if wrong and wrong != NUMBER_TOO_LARGE:  # before it is decoded, which reads each digit
        raise BadDocument(f"{subject}: it {wrong}")
    _check_size(scan, subject)
    value = _decoded(data, subject, _far if scan.has_far_numbers() else _near)
    if not isinstance(value, kind):
        raise BadDocument(
            f"{subject}: it is {with_article(type(value).__name__)}, where a JSON object belongs"
        )
    wrong = wrong or _wrong_text(data) or _too_deep(scan)
    if wrong:
        if len(data) <= WALK_BYTES_MAX:
            _check_walking(value, subject)
        raise BadDocument(f"{subject}: it {wrong}")


def _decoded(data: bytes, subject: str, decoder: "msgspec.json.Decoder[Any]") -> Any:
    try:
        return decoder.decode(data)
    except RecursionError:
        raise BadDocument(f"{subject}: it is nested deeper than {DEPTH_MAX} levels. Flatten it") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadDocument(f"{subject}: {str(error)[:300]}. Send JSON that PostgreSQL can hold") from None


def _wrong_text(data: bytes) -> str | None:
    # A backslash that is itself escaped escapes nothing.
    if b"\\u0000" in data and b"\\u0000" in data.replace(rb"\\", b""):
        return "contains a NUL character, which PostgreSQL text cannot hold. Remove it"
    return None


def _check_size(scan: Scan, subject: str) -> None:
    if size := scan.exceeds():
        raise _too_long(size, subject)
    if scan.has_too_many_objects():
        raise BadDocument(
            f"{subject}: more than {OBJECTS_MAX:,} objects. Store them elsewhere and pass a reference"
        )


def _too_deep(scan: Scan) -> str | None:
    return f"lies deeper than {DEPTH_MAX} levels. Flatten it" if scan.is_deeper_than(DEPTH_MAX) else None


def _too_long(size: int, subject: str) -> BadDocument:
    return BadDocument(
        f"{subject}: {size:,} bytes of JSON, and {BYTES_MAX:,} are allowed. "
        "Store it elsewhere and pass a reference"
    )


def _encode(value: Any) -> bytes:
    try:
        return _sorted.encode(value)
    except TypeError:  # a set of mixed kinds, or a dict whose keys are not all text
        return _plain.encode(value)


def _is_suspicious(data: bytes, value: Any) -> bool:
    # NaN is written as null and NUL as its escape: both look harmless, so each needs a second check.
    return b"\\u0000" in data or (b"null" in data and data.count(b"null") != _nones(value))


def _nones(value: Any) -> int:
    """The nulls that are simply arguments with None: the ordinary case, without a walk."""
    return len([None for part in value.values() if part is None]) if type(value) is dict else 0


def _check_walking(value: Any, subject: str) -> None:
    for place, level, part in _walk(msgspec.to_builtins(value, enc_hook=model_hooks.dump)):
        wrong = _trouble(part) if level <= DEPTH_MAX else f"lies deeper than {DEPTH_MAX} levels. Flatten it"
        if wrong:
            raise BadDocument(f"{subject}: {_named(place) or 'the value'} {wrong}")


def _walk(root: Any) -> Iterator[tuple[Place, int, Any]]:
    """Every value in a document with its place and level, outermost first."""
    waiting: list[tuple[Place, int, Any]] = [((), 1, root)]
    while waiting:
        place, level, value = waiting.pop()
        yield place, level, value
        if isinstance(value, dict):
            for key, inner in value.items():
                yield (place, None), level, key
                waiting.append(((place, key), level + 1, inner))
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += (((place, index), level + 1, inner) for index, inner in enumerate(value))


def _named(place: Place) -> str:
    """The place in readable form: made only for an error.

    >>> _named((((), "order"), 3)), _named((((), "order"), None)), _named(())
    ('order[3]', 'a key in order', '')
    """
    if not place:
        return ""
    outer, step = place
    around = _named(outer)
    if step is None:
        return f"a key in {around or 'it'}"
    if isinstance(step, int):
        return f"{around}[{step}]"
    return f"{around}.{_shown(step)}" if around else _shown(step)


def _shown(key: object) -> str:
    return ascii(key)[1:-1][:60] if isinstance(key, str) else repr(key)[:60]


def _trouble(part: Any) -> str:
    match part:
        case bool() | None:
            return ""
        case float() if not math.isfinite(part):
            return f"is {part}, which JSON does not have. Use None"
        # A float is compared with the float: 1e308 itself lies a little above ten to the 308th.
        case int() | float() if abs(part) > (1e308 if isinstance(part, float) else NUMBER_MAX):
            return "is a number beyond 1e308 either way. Send it as text"
        case str() if "\0" in part:
            return "contains a NUL character, which PostgreSQL text cannot hold. Remove it"
        case str() if not part.isascii() and _has_surrogates(part):
            return "contains a lone surrogate, which is not text. Decode it with errors='replace'"
    return ""


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _explain(value: Any, subject: str, error: Exception) -> BadDocument:
    """Name the place and the reason why a value could not be encoded at all."""
    if isinstance(error, RecursionError):
        return BadDocument(
            f"{subject}: a value is cyclic or nested deeper than {DEPTH_MAX} levels. Flatten it"
        )
    try:
        _check_walking(value, subject)
    except BadDocument as named:
        return named
    except Exception:  # the walk met the same error as the encoder, whose text is enough
        pass
    return BadDocument(f"{subject}: {_culprit(value)}{_reason(error)}. Pass something JSON has a form for")


def _culprit(value: Any) -> str:
    """Which argument could not be encoded, when the value is a set of arguments."""
    for name, part in value.items() if isinstance(value, dict) else ():
        try:
            _encode(part)
        except Exception:
            return f"{_shown(name)}: "
    return ""


def _reason(error: Exception) -> str:
    try:
        return str(error)[:300]
    except Exception:
        return type(error).__name__
