"""Suggestions for a mistyped name."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from operator import eq
from typing import Any, Final

CHARS_MAX = 140

COMPARED_MAX: Final = 200
"""A comparison of two names takes 40 us, and an installation may have thousands of queues."""

NO_OTHERS: Final[Mapping[str, str]] = {}


def close_to(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that are nearly this word, the nearest first.

    >>> close_to("Chrage", ["charge", "refund"])
    ['charge']
    """
    by_lower = {name.lower(): name for name in known}
    by_lower = _nearest(word.lower(), by_lower) if len(by_lower) > COMPARED_MAX else by_lower
    found = difflib.get_close_matches(str(word)[:CHARS_MAX].lower(), by_lower, n=most)
    return [by_lower[name] for name in found]


def _nearest(word: str, names: Mapping[str, str]) -> dict[str, str]:
    """The names to compare, of very many: of nearly the same length, those with the same beginning first."""
    near = [name for name in names if abs(len(name) - len(word)) <= 2]
    near.sort(key=lambda name: -sum(takewhile(bool, map(eq, word, name))))
    return {name: names[name] for name in near[:COMPARED_MAX]}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name; empty where no known name is near.

    >>> did_you_mean("qeue", ["queue", "priority"])
    '; did you mean queue?'
    >>> did_you_mean("elephant", ["queue"])
    ''
    """
    close = close_to(word, known)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def naming_options(
    called: str, refusal: type[Exception], elsewhere: Mapping[str, str] = NO_OTHERS
) -> Callable[[Callable[..., Any]], Any]:
    """Make a function suggest the right name for an unknown option, instead of a bare TypeError.

    Only a call that fails is checked. For use where a type checker does not see it: it knows the signature.

    >>> @naming_options("paint", ValueError, {"color": "hue"})
    ... def paint(*, hue: str, shade: int = 0) -> None: ...
    >>> paint(shde=1)
    Traceback (most recent call last):
    ValueError: paint has no option 'shde'; did you mean shade? It takes hue, shade
    """

    def decorate(function: Callable[..., Any]) -> Any:
        known = [name for name in inspect.signature(function).parameters if name != "self"]

        def wrong(given: Mapping[str, Any]) -> Exception | None:
            for name in given:
                if name not in known:
                    meant = elsewhere.get(name)
                    hint = f"; did you mean {meant}?" if meant else did_you_mean(name, known)
                    return refusal(
                        f"{called} has no option {name[:60]!a}{hint or '.'} It takes {', '.join(known)}"
                    )
            return None

        @functools.wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError:
                if refused := wrong(kwargs):
                    raise refused from None
                raise

        @functools.wraps(function)
        async def waiting(*args: Any, **kwargs: Any) -> Any:
            try:
                return await function(*args, **kwargs)
            except TypeError:
                if refused := wrong(kwargs):
                    raise refused from None
                raise

        return waiting if inspect.iscoroutinefunction(function) else plain

    return decorate
