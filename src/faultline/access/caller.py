"""Caller: whoever stands at the door, and what they may do behind it."""

from dataclasses import dataclass
from typing import Final

from faultline.errors import NotAllowed

SCOPES: Final = ("enqueue", "read", "work", "operate", "admin")
"""What a key may be for; `admin` implies the others."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who was let in: a name, what they may do, and on which queues (None: on all of them).

    >>> mail = Caller("mailer", frozenset({"enqueue", "read"}), frozenset({"mail"}))
    >>> mail.require("enqueue", "mail")
    >>> mail.may("enqueue", "billing"), mail.may("operate", "mail"), mail.may("read")
    (False, False, True)
    """

    name: str
    scopes: frozenset[str]
    queues: frozenset[str] | None
    key_id: str | None = None

    @property
    def actor(self) -> str:
        """How acts name this caller: with the key's id, since a name may have two keys for a while."""
        return self.name if self.key_id is None else f"{self.name} (key {self.key_id})"

    def may(self, scope: str, queue: str | None = None) -> bool:
        """Whether the scope is held and, where a queue is named, held for it."""
        if scope not in SCOPES:
            raise ValueError(f"there is no scope {scope!r}, only {', '.join(SCOPES)}")
        held = scope in self.scopes or "admin" in self.scopes
        return held and (queue is None or self.queues is None or queue in self.queues)

    def require(self, scope: str, queue: str | None = None) -> None:
        """Raise NotAllowed unless this caller may.

        Without a queue only the scope is asked for: whoever answers with jobs or queues then shows only
        those of `queues`; whatever concerns them all asks `require_everywhere`.
        """
        if self.may(scope, queue):
            return
        if self.may(scope):
            # Whether that queue exists is not said: a stranger to it should not learn it here.
            raise NotAllowed(f"{self.name} may not {scope} on this queue; use a key that is for it")
        raise NotAllowed(f"{self.name} has no scope {scope!r}; use a key that has it")

    def require_everywhere(self, scope: str) -> None:
        """Raise NotAllowed unless this caller may, on every queue there is and will be."""
        self.require(scope)
        if self.queues is not None:
            raise NotAllowed(
                f"{self.name} is bound to its queues, this concerns all; use a key without queues"
            )


LOOPBACK: Final = Caller("loopback", frozenset({"read"}), None)
"""Without a key, on the machine itself: may look, may touch nothing."""
