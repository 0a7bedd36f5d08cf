"""What the functions of a database should be, read from the SQL that this package ships. Pure."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

_HEAD: Final = re.compile(
    r"^create function faultline\.(\w+)(.*?)^as \$\$(.*)\$\$;\s*\Z", re.DOTALL | re.MULTILINE
)
_SETTING: Final = re.compile(r"^set (\w+) = (.+)$", re.MULTILINE)
_ALTERED: Final = re.compile(r"'alter function %s set (\w+) = (\w+)'")
_DUTY: Final = re.compile(r"\('\{([\w,]+)\}'(?:::text\[\])?, '(\w+)',\s*'\{([\w,]+)\}'")
_EXEMPT: Final = re.compile(r"continue when .*?\(([\w|]+)\)")


class Shipped(NamedTuple):
    """A function as it leaves this package."""

    name: str
    definer: bool
    config: frozenset[str]
    body: str


@cache
def shipped() -> dict[str, Shipped]:
    """Every function, by its name; the settings that last.sql gives the verbs are among theirs.

    >>> shipped()["claim"].definer, shipped()["put_back"].definer
    (True, False)
    >>> "search_path=pg_catalog, pg_temp" in shipped()["claim"].config
    True
    """
    return {function.name: function for function in _read()}


@cache
def duties() -> frozenset[tuple[str, str, str]]:
    """Which duty is granted which function or view, as duties.sql lists them.

    >>> ("worker", "function", "claim") in duties(), ("producer", "function", "claim") in duties()
    (True, False)
    """
    return frozenset(
        (duty, kind, thing)
        for some, kind, things in _DUTY.findall(shipped()["duties"].body)
        for duty in some.split(",")
        for thing in things.split(",")
    )


def _read() -> Iterator[Shipped]:
    folder = files("faultline.sql")
    last = folder.joinpath("last.sql").read_text()
    for entry in folder.joinpath("functions").iterdir():
        if entry.name.endswith(".sql"):
            yield _parsed(entry.read_text(), last)


def _parsed(sql: str, last: str) -> Shipped:
    form = _HEAD.search(sql)
    if form is None:
        raise ValueError(
            f"a function was shipped in a form that its manifest cannot be read from: {sql[:80]!r}"
        )
    name, head, body = form.groups()
    definer = "\nsecurity definer\n" in head
    own = dict(_SETTING.findall(head))
    settings = _of_the_verbs(name, last) | own if definer else own
    return Shipped(name, definer, frozenset(f"{key}={value}" for key, value in settings.items()), body)


def _of_the_verbs(name: str, last: str) -> dict[str, str]:
    """What last.sql sets on every verb, and on all but those it passes over."""
    always, _, unless = last.partition("continue when")
    settings = dict(_ALTERED.findall(always))
    exempt = _EXEMPT.search(last)
    if exempt is None or name not in exempt[1].split("|"):
        settings |= dict(_ALTERED.findall(unless))
    return settings
