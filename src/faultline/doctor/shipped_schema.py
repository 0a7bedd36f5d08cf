"""The functions that a database should have, read from the SQL that this package ships. Pure."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from faultline.store.sql_files import functions

_HEAD: Final = re.compile(
    r"^create function faultline\.(\w+)(.*?)^as \$\$(.*)\$\$;\s*\Z", re.DOTALL | re.MULTILINE
)
_SETTING: Final = re.compile(r"^set (\w+) = (.+)$", re.MULTILINE)
_ALTERED: Final = re.compile(r"'alter function %s set (\w+) = (\w+)'")
_DUTY: Final = re.compile(r"\('\{([\w,]+)\}'(?:::text\[\])?, '(\w+)',\s*'\{([\w,\s]+)\}'")
_EXEMPT: Final = re.compile(r"continue when .*?\(([\w|]+)\)")


class ShippedFunction(NamedTuple):
    """A function as it leaves this package."""

    name: str
    definer: bool
    config: frozenset[str]
    body: str


@cache
def shipped() -> dict[str, ShippedFunction]:
    """Every function, by its name; with the settings that last.sql gives the verbs.

    >>> shipped()["claim"].definer, shipped()["put_back"].definer
    (True, False)
    >>> "search_path=pg_catalog, pg_temp" in shipped()["claim"].config
    True
    """
    return {function.name: function for function in _read()}


@cache
def role_grants() -> frozenset[tuple[str, str, str]]:
    """The duties and the functions and views granted to them, from role_grants.sql.

    >>> ("worker", "function", "claim") in role_grants(), ("producer", "function", "claim") in role_grants()
    (True, False)
    """
    return frozenset(
        (duty, kind, thing)
        for some, kind, things in _DUTY.findall(shipped()["role_grants"].body)
        for duty in some.split(",")
        for thing in re.findall(r"\w+", things)
    )


def _read() -> Iterator[ShippedFunction]:
    last = files("faultline.sql").joinpath("last.sql").read_text()
    for _, sql in functions():
        yield _parsed(sql, last)


def _parsed(sql: str, last: str) -> ShippedFunction:
    form = _HEAD.search(sql)
    if form is None:
        raise ValueError(
            f"a function was shipped in a form that its manifest cannot be read from: {sql[:80]!r}"
        )
    name, head, body = form.groups()
    definer = "\nsecurity definer\n" in head
    own = dict(_SETTING.findall(head))
    settings = _of_the_verbs(name, last) | own if definer else own
    return ShippedFunction(
        name, definer, frozenset(f"{key}={value}" for key, value in settings.items()), body
    )


def _of_the_verbs(name: str, last: str) -> dict[str, str]:
    """The settings of last.sql for every verb, and for all but those it skips."""
    always, _, unless = last.partition("continue when")
    settings = dict(_ALTERED.findall(always))
    exempt = _EXEMPT.search(last)
    if exempt is None or name not in exempt[1].split("|"):
        settings |= dict(_ALTERED.findall(unless))
    return settings
