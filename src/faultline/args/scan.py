"""The text of a document, looked at as bytes: its numbers, its depth, its length once PostgreSQL prints it.

No value is built, no number is formatted, and no pattern steps back: the cost grows with the length of the
text, whatever stands in it. An ordinary document costs two substring searches; only one that has long digit
runs or exponents is read number by number, and one whose length may grow past the limit is measured.
"""

import re
from itertools import accumulate
from typing import Final

from faultline.bounds import DIGITS_MAX, EXPONENT_MAX

BYTES_MAX: Final = 1_048_576
"""The largest document, measured as PostgreSQL prints it."""

# `1e-400,` is seven bytes here and 404 when PostgreSQL prints it; nothing grows by more.
_GROWTH_MAX: Final = 58
SMALL_BYTES: Final = BYTES_MAX // _GROWTH_MAX
"""No document of this length grows past the limit."""

_MAGNITUDE_MAX: Final = 308

# The quantifiers are possessive. A text that is not closed ends with the document: that it is no JSON is for
# the parser to say, and to look for the next quote would make the search quadratic.
_TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NUMBER: Final = re.compile(rb"([0-9]++)(?:\.([0-9]++))?+(?:[eE]([+-]?)([0-9]++))?+")
_POWERED: Final = re.compile(rb"([0-9]++)(?:\.([0-9]++))?+[eE]([+-]?[0-9]++)")

_FORM: Final = bytes.maketrans(b"123456789E", b"000000000e")
_LONG: Final = b"0" * (_MAGNITUDE_MAX + 1)
_POWER: Final = b"0e000"
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_ALL_ELSE: Final = bytes(set(range(256)) - _STEPS.keys())

TOO_MANY_DIGITS: Final = f"has a number of more than {DIGITS_MAX} digits in a row. Send it as text"
EXPONENT_TOO_LARGE: Final = f"has a number with an exponent beyond {EXPONENT_MAX} either way. Send it as text"
NUMBER_TOO_LARGE: Final = "has a number beyond 1e308 either way. Send it as text"


class Scan:
    """One document's text.

    >>> Scan(b'{"a":1e-7}').wrong_number()
    >>> Scan(b'{"a":1e-99999}').wrong_number()
    'has a number with an exponent beyond 400 either way. Send it as text'
    >>> Scan(b'[1e3,"1e3"]').printed_bytes()
    13
    """

    __slots__ = ("_bare", "_form", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._form = _form(data)
        self._bare: bytes | None = None

    def wrong_number(self) -> str | None:
        """What is wrong with the first number that is past its bounds."""
        if not _is_risky(self._form) or not _is_risky(_form(self.bare())):
            return None
        for number in _NUMBER.finditer(self.bare()):
            if number.end() - number.start() > 4 and (wrong := _wrong(*number.groups(b""))):
                return wrong
        return None

    def exceeds(self) -> int | None:
        """How long it is printed, if that is past the limit; its numbers are within their bounds."""
        if len(self.data) <= SMALL_BYTES:
            return None
        if len(self.data) > BYTES_MAX:
            return len(self.data)
        if self._bytes_at_most() <= BYTES_MAX:
            return None
        size = self.printed_bytes()
        return size if size > BYTES_MAX else None

    def _bytes_at_most(self) -> int:
        """Never less than it is printed with: by how many digits its exponents have."""
        one, two, three = (self._form.count(power) for power in (b"0e0", b"0e00", _POWER))
        growth = 9 * (one - two) + 99 * (two - three) + EXPONENT_MAX * three
        return len(self.data) + self.data.count(b",") + self.data.count(b":") + growth

    def printed_bytes(self) -> int:
        """How long PostgreSQL prints it: spaced out, and numbers without exponents."""
        bare = self.bare()
        size = len(self.data) + bare.count(b",") + bare.count(b":")
        if b"0e0" not in _form(bare):
            return size
        for whole, fraction, power in _POWERED.findall(bare):
            size += _printed(whole, fraction, int(power)) - len(whole) - len(power) - 1
            if fraction:
                size -= len(fraction) + 1
        return size

    def is_deeper_than(self, levels: int) -> bool:
        """Whether brackets stand inside one another deeper than so; a scalar is a level of its own."""
        if len(self.data) <= levels or self.data.count(b"[") + self.data.count(b"{") < levels:
            return False
        # What is empty holds no further level; what is left open this often holds one more.
        full = self.bare().translate(None, b" \t\r\n").replace(b"[]", b"").replace(b"{}", b"")
        depths = accumulate(map(_STEPS.__getitem__, full.translate(None, _ALL_ELSE)))
        return max(depths, default=0) >= levels

    def bare(self) -> bytes:
        """The document without its texts."""
        if self._bare is None:
            self._bare = _TEXT.sub(b'"', self.data) if b'"' in self.data else self.data
        return self._bare


def _form(data: bytes) -> bytes:
    """The same text with every digit a 0 and without signs: what digits stand in it no longer matters."""
    return data.translate(_FORM, b"+-")


def _is_risky(form: bytes) -> bool:
    return _POWER in form or (len(form) > _MAGNITUDE_MAX and _LONG in form)


def _wrong(whole: bytes, fraction: bytes, sign: bytes, power: bytes) -> str | None:
    if len(whole) > DIGITS_MAX or len(fraction) > DIGITS_MAX:
        return TOO_MANY_DIGITS
    power = power.lstrip(b"0")
    exponent = int(power or b"0") if len(power) <= 3 else EXPONENT_MAX + 1
    if exponent > EXPONENT_MAX:
        return EXPONENT_TOO_LARGE
    digits = (whole + fraction).lstrip(b"0")
    magnitude = len(digits) - len(fraction) - 1 + (-exponent if sign == b"-" else exponent)
    if not digits or magnitude < _MAGNITUDE_MAX:
        return None
    is_the_limit = magnitude == _MAGNITUDE_MAX and digits.rstrip(b"0") == b"1"
    return None if is_the_limit else NUMBER_TOO_LARGE


def _printed(whole: bytes, fraction: bytes, exponent: int) -> int:
    """How many bytes `numeric` prints a number with, its sign left out.

    >>> _printed(b"12", b"5", 3), _printed(b"1", b"", -3), _printed(b"0", b"", 9)
    (5, 5, 1)
    """
    digits = len((whole + fraction).lstrip(b"0"))
    before = digits - len(fraction) + exponent if digits else 1
    after = len(fraction) - exponent
    return (before if before > 1 else 1) + (1 + after if after > 0 else 0)
