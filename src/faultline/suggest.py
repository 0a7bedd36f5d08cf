"""What a mistyped name may have meant."""

import difflib
from collections.abc import Iterable

CHARS_MAX = 140


def close_to(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that are nearly this word, the nearest first.

    >>> close_to("Chrage", ["charge", "refund"])
    ['charge']
    """
    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(str(word)[:CHARS_MAX].lower(), by_lower, n=most)
    return [by_lower[name] for name in found]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about a name that is not known; empty where nothing is near it.

    >>> did_you_mean("qeue", ["queue", "priority"])
    '; did you mean queue?'
    >>> did_you_mean("elephant", ["queue"])
    ''
    """
    close = close_to(word, known)
    return f"; did you mean {' or '.join(close)}?" if close else ""
