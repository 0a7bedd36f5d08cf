"""Documents that were cheap to send and dear to check, and a plain one of the same length beside each."""

from typing import Final

MIB: Final = 1_048_576


def _filled(part: str, size: int) -> str:
    """`{"a": [part,part,...]}` of about this many bytes, and never more."""
    return '{"a": [' + ",".join([part] * ((size - 10) // (len(part) + 1))) + "]}"


def plain(size: int) -> str:
    """What such a document usually holds."""
    return _filled('"some text",1234', size)


REFUSED: Final = {
    "a number of 20,000 digits": '{"a": ' + "9" * 20_000 + "}",
    "a number of a million digits": '{"a": 0.' + "9" * 1_000_000 + "}",
    "an exponent of a million digits": '{"a": 1e' + "9" * 1_000_000 + "}",
    "exponents of a million": _filled("1e999999", 20_000),
    "small numbers that are printed at length": _filled("1e-16383", 900_000),
    "zeros that are printed at length": _filled("0e-16383", 900_000),
    "one small number at the end": _filled('"some text",1234', 900_000)[:-2] + ",1e-9999]}",
    "numbers of 400 zeros": _filled("1e-400", 1_000_000),
    "zeros of 400 zeros": _filled("0e-400", 1_000_000),
    "the largest numbers": _filled("1e308", 1_000_000),
    "numbers that grow a little": _filled("1e9", 1_000_000),
    "a NUL at the end": _filled('"some text",1234', 1_000_000)[:-2] + ',"\\u0000"]}',
    "a depth at the end": _filled("1", 500_000)[:-2] + "," + "[" * 70 + "]" * 70 + "]}",
    "objects beside each other": _filled("{}", 600_000),
    "a text that does not end": '{"a": 1e500,"' + '\\"' * 500_000,
}

KEPT: Final = {
    "rows of 300 digits": _filled("1" * 300, 1_000_000),
    "rows of 308 digits in texts": _filled('"' + "9" * 308 + '"', 1_000_000),
    "a text of digits": '{"a": "' + "9" * 1_000_000 + '"}',
    "texts like exponents": _filled('"1e16383"', 900_000),
    "escapes": _filled('"\\u0041"', 900_000),
    "exponents that change nothing": _filled("1e0", 1_000_000),
    "brackets beside each other": _filled("[]", 600_000),
    "objects within the bound": _filled('{"":0}', 699_000),
    "objects within the bound, and a number to look at": _filled('{"":0}', 699_000)[:-2]
    + ',1e300,"\\u0041"]}',
    "nulls": _filled("null", 800_000),
}
