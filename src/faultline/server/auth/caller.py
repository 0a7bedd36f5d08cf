"""Caller: the caller of a request, with its scopes and queues."""

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from faultline.errors import ConfigError, NotAllowed
from faultline.telemetry import printable

SCOPES: Final = ("enqueue", "read", "work", "operate", "admin")
"""The scopes of a key; `admin` implies the others."""

NAME_CHARS_MAX: Final = 200
"""Acts keep so much of a name."""

_NAMES_A_KEY: Final = re.compile(r"\(key [0-9a-f]{12}\)\s*$")


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller: a name, its scopes, and its queues (None: all of them).

    >>> mail = Caller("mailer", frozenset({"enqueue", "read"}), frozenset({"mail"}))
    >>> mail.require("enqueue", "mail")
    >>> mail.may("enqueue", "billing"), mail.may("operate", "mail"), mail.may("read")
    (False, False, True)
    """

    name: str
    scopes: frozenset[str]
    queues: frozenset[str] | None
    key_id: str | None = None

    def __post_init__(self) -> None:
        # A text has `in` too, and finds parts of words: "admin" in "not-an-admin".
        if not isinstance(self.scopes, Set) or not self.scopes <= set(SCOPES):
            raise ConfigError(f"scopes is a set of names among {', '.join(SCOPES)}; got {self.scopes!a}")
        if self.queues is not None and not isinstance(self.queues, Set):
            raise ConfigError(f"queues is a set of names, or None for all queues; got {self.queues!a}")
        if self.key_id is None:
            _check_name(self.name)

    @property
    def actor(self) -> str:
        """The caller's name in acts: with the key's id, since a name may have two keys for a while."""
        return self.name if self.key_id is None else f"{self.name} (key {self.key_id})"

    def may(self, scope: str, queue: str | None = None) -> bool:
        """Whether the caller has the scope and, where a queue is named, has it for that queue."""
        if scope not in SCOPES:
            raise ValueError(f"there is no scope {scope!r}, only {', '.join(SCOPES)}")
        held = scope in self.scopes or "admin" in self.scopes
        return held and (queue is None or self.queues is None or queue in self.queues)

    def require(self, scope: str, queue: str | None = None) -> None:
        """Raise NotAllowed unless this caller has the scope.

        Without a queue only the scope is checked: a route that answers with jobs or queues then shows only
        those of `queues`; acts on all queues use `require_everywhere`.
        """
        if self.may(scope, queue):
            return
        if self.may(scope):
            # The text is the same for a missing queue: callers without rights cannot test for names.
            raise NotAllowed(f"{self.name} may not {scope} on this queue; use a key that is for it")
        raise NotAllowed(f"{self.name} has no scope {scope!r}; use a key that has it")

    def require_everywhere(self, scope: str) -> None:
        """Raise NotAllowed unless this caller has the scope for every present and future queue."""
        self.require(scope)
        if self.queues is not None:
            raise NotAllowed(
                f"{self.name} is bound to its queues, this concerns all; use a key without queues"
            )


def _check_name(name: object) -> None:
    """ConfigError for the name of a user under which acts would be noted as those of another."""
    if not isinstance(name, str) or not name.strip() or len(name) > NAME_CHARS_MAX:
        raise ConfigError(f"a caller's name is a text of 1 to {NAME_CHARS_MAX} characters; got {name!a:.99}")
    if printable(name) != name or _NAMES_A_KEY.search(name):
        raise ConfigError(f"a caller's name has no control characters and names no API key; got {name!a}")


LOOPBACK: Final = Caller("loopback", frozenset({"read"}), None)
"""A caller without a key on this machine: may read, and change nothing."""
