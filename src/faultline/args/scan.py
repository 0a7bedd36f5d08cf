"""The text of a document, examined as bytes: its numbers, its depth, its length once PostgreSQL prints it.

No value is built, no number is formatted, and no pattern steps back: the cost grows with the length of the
text alone. An ordinary document costs two substring searches; only one with long digit runs or exponents is
examined further, and one whose length may grow past the limit is measured. Even then no Python runs for
each number: a server checks on its event loop. Exponents are counted by value, numbers by
form, and the few that can be beyond 1e308 are read singly.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import Final

from faultline.bounds import DIGITS_MAX, EXPONENT_MAX

BYTES_MAX: Final = 1_048_576
"""The largest document, measured as PostgreSQL prints it."""

OBJECTS_MAX: Final = 100_000
"""In one document. As jsonb each takes 630 bytes of a PostgreSQL backend, also an empty one."""

# `1e-400,` is seven bytes here and 404 when PostgreSQL prints it; nothing grows by more.
_GROWTH_MAX: Final = 58
SMALL_BYTES: Final = BYTES_MAX // _GROWTH_MAX
"""No document of this length grows past the limit."""

_MAGNITUDE_MAX: Final = 308

# The quantifiers are possessive. They read a document without its texts, in lower case, without plus signs.
_EXPONENT: Final = re.compile(rb"e(-?[0-9]++)")
_POWERED: Final = re.compile(rb"([0-9.]++)e(-?[0-9]++)")
_TOO_MANY_DIGITS: Final = re.compile(rb"(?<![0-9])[0-9]{%d}" % (DIGITS_MAX + 1))
# The numbers that may be beyond 1e308: of many digits, or not zero and with an exponent of three digits.
_MANY: Final = b"0" * (_MAGNITUDE_MAX - 99)
_LONG_NUMBER: Final = re.compile(rb"(?<![0-9.])([0-9]{209,}+)(?:\.([0-9]++))?+(?:e(-?[0-9]++))?+")
_LARGE_NUMBER: Final = re.compile(
    rb"(?<![0-9.])(?!0(?:\.0++)?+e)([0-9]++)(?:\.([0-9]++))?+e(0*+[1-9][0-9]{2,}+)"
)
_LARGE_MAX: Final = 2 * BYTES_MAX // 100
"""The bound on the latter in a document within the limit: each is printed or written with 100 digits."""

_FORM: Final = bytes.maketrans(b"123456789E", b"000000000e")
_LONG: Final = b"0" * (_MAGNITUDE_MAX + 1)
_POWER: Final = b"0e000"
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_LOWER: Final = bytes.maketrans(b"E", b"e")
_SAME_LENGTH: Final = bytes.maketrans(b"23456789", b"11111111")
_ALL_ELSE: Final = bytes(set(range(256)) - _STEPS.keys())

TOO_MANY_DIGITS: Final = f"has a number of more than {DIGITS_MAX} digits in a row. Send it as text"
EXPONENT_TOO_LARGE: Final = f"has a number with an exponent beyond {EXPONENT_MAX} either way. Send it as text"
NUMBER_TOO_LARGE: Final = "has a number beyond 1e308 either way. Send it as text"


def is_plain(data: bytes, levels: int) -> bool:
    """Whether it is so short and simple that a Scan would find nothing: the common and fast case.

    >>> is_plain(b'{"order_id":7}', 64), is_plain(b'{"a":1e-99999}', 64), is_plain(b"[[1]]", 2)
    (True, False, False)
    """
    return (
        len(data) <= _MAGNITUDE_MAX
        and _POWER not in data.translate(_FORM, b"+-")
        and data.count(b"[") + data.count(b"{") < levels
    )


class Scan:
    """One document's text.

    >>> Scan(b'{"a":1e-7}').wrong_number()
    >>> Scan(b'{"a":1e-99999}').wrong_number()
    'has a number with an exponent beyond 400 either way. Send it as text'
    >>> Scan(b'[1e3,"1e3"]').printed_bytes()
    13
    """

    __slots__ = ("_bare", "_exponents", "_form", "_lower", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._form = _form(data)
        self._bare: bytes | None = None
        self._lower: bytes | None = None
        self._exponents: Counter[bytes] | None = None

    def wrong_number(self) -> str | None:
        """The fault of a number past its bounds."""
        if not _is_risky(self._form) or not _is_risky(form := _form(self.bare())):
            return None
        lower, has_long = self.lower(), _MANY in form
        if has_long and _TOO_MANY_DIGITS.search(lower):
            return TOO_MANY_DIGITS
        powers = self.exponents()
        if any(len(power) > 3 and len(power.lstrip(b"-0")) > 3 for power in powers):
            return EXPONENT_TOO_LARGE
        exponents = set(map(int, powers))
        if max(map(abs, exponents), default=0) > EXPONENT_MAX:
            return EXPONENT_TOO_LARGE
        has_large = max(exponents, default=0) >= 100
        numbers = _may_be_too_large(lower, has_long, has_large)
        return NUMBER_TOO_LARGE if any(map(_is_too_large, numbers)) else None

    def has_far_numbers(self) -> bool:
        """Whether an exponent of three digits may occur in it, in a text or outside."""
        return _POWER in self._form

    def exceeds(self) -> int | None:
        """The printed length, if that is past the limit; the numbers are within their bounds."""
        if len(self.data) <= SMALL_BYTES:
            return None
        if len(self.data) > BYTES_MAX:
            return len(self.data)
        if self._bytes_at_most() <= BYTES_MAX or self._bytes_by_exponents() <= BYTES_MAX:
            return None
        size = self.printed_bytes()
        return size if size > BYTES_MAX else None

    def _bytes_at_most(self) -> int:
        """An upper bound on the printed length: by the number of digits in its exponents."""
        one, two, three = (self._form.count(power) for power in (b"0e0", b"0e00", _POWER))
        growth = 9 * (one - two) + 99 * (two - three) + EXPONENT_MAX * three
        return len(self.data) + self.data.count(b",") + self.data.count(b":") + growth

    def _bytes_by_exponents(self) -> int:
        """A closer upper bound on the printed length: by what each exponent can add to a number."""
        growth = sum(times * (abs(int(power)) - len(power)) for power, times in self.exponents().items())
        return len(self.data) + self.bare().count(b",") + self.bare().count(b":") + growth

    def printed_bytes(self) -> int:
        """The length as PostgreSQL prints it: with blanks, and numbers without exponents."""
        bare = self.bare()
        size = len(self.data) + bare.count(b",") + bare.count(b":")
        if b"0e0" not in _form(bare):
            return size
        plus = bare.count(b"+")
        parts = _POWERED.findall(self.lower())
        # The digits themselves do not matter: numbers of one form are measured once.
        forms = b" ".join([number for number, _ in parts]).translate(_SAME_LENGTH).split(b" ")
        for (number, power), times in Counter(zip(forms, [power for _, power in parts], strict=True)).items():
            whole, _, fraction = number.partition(b".")
            size += times * (_printed(whole, fraction, int(power)) - len(number) - len(power) - 1)
        return size - plus

    def lower(self) -> bytes:
        """The document without its texts, exponents with a small e and no plus."""
        if self._lower is None:
            self._lower = self.bare().translate(_LOWER, b"+")
        return self._lower

    def exponents(self) -> Counter[bytes]:
        """Every exponent as written, with its count."""
        if self._exponents is None:
            self._exponents = Counter(_EXPONENT.findall(self.lower()))
        return self._exponents

    def has_too_many_objects(self) -> bool:
        """Whether it has more than OBJECTS_MAX objects."""
        return self.data.count(b"{") > OBJECTS_MAX and self.bare().count(b"{") > OBJECTS_MAX

    def is_deeper_than(self, levels: int) -> bool:
        """Whether brackets are nested deeper than this; a scalar is a level of its own."""
        if len(self.data) <= levels or self.data.count(b"[") + self.data.count(b"{") < levels:
            return False
        # An empty pair holds no further level; what is left open this often holds one more.
        full = self.bare().translate(None, b" \t\r\n").replace(b"[]", b"").replace(b"{}", b"")
        depths = accumulate(map(_STEPS.__getitem__, full.translate(None, _ALL_ELSE)))
        return max(depths, default=0) >= levels

    def bare(self) -> bytes:
        """The document without its texts. One that is not closed ends with it: it is no JSON."""
        if self._bare is None:
            data = self.data
            if b"\\" in data:  # a backslash that is itself escaped escapes no quote
                data = data.replace(rb"\\", b"").replace(rb"\"", b"")
            self._bare = b'"'.join(data.split(b'"')[::2])
        return self._bare


def _form(data: bytes) -> bytes:
    """The same text with every digit a 0 and without signs: numbers of one form become equal."""
    return data.translate(_FORM, b"+-")


def _is_risky(form: bytes) -> bool:
    return _POWER in form or (len(form) > _MAGNITUDE_MAX and _LONG in form)


Number = tuple[bytes, bytes, bytes]
"""Whole part, fraction, exponent."""


def _may_be_too_large(lower: bytes, has_long: bool, has_large: bool) -> Iterator[Number]:
    if has_long:
        for found in _LONG_NUMBER.finditer(lower):
            yield found.group(1), found.group(2) or b"", found.group(3) or b"0"
    if has_large:
        for found in islice(_LARGE_NUMBER.finditer(lower), _LARGE_MAX):
            yield found.group(1), found.group(2) or b"", found.group(3)


def _is_too_large(number: Number) -> bool:
    whole, fraction, power = number
    digits = (whole + fraction).lstrip(b"0")
    magnitude = len(digits) - len(fraction) - 1 + int(power)
    if not digits or magnitude < _MAGNITUDE_MAX:
        return False
    return magnitude > _MAGNITUDE_MAX or digits.rstrip(b"0") != b"1"


def _printed(whole: bytes, fraction: bytes, exponent: int) -> int:
    """The bytes that `numeric` prints for a number, without its sign.

    >>> _printed(b"12", b"5", 3), _printed(b"1", b"", -3), _printed(b"0", b"", 9)
    (5, 5, 1)
    """
    digits = len((whole + fraction).lstrip(b"0"))
    before = digits - len(fraction) + exponent if digits else 1
    after = len(fraction) - exponent
    return (before if before > 1 else 1) + (1 + after if after > 0 else 0)
