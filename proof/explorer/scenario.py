"""A scenario: a few sessions, what each does, and how the database stands before."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from proof.explorer.step import Program


@dataclass(frozen=True)
class VerbStop:
    """A place inside a shipped function where a session can be left standing: before what `before` says.

    Under READ COMMITTED each statement of a function has a snapshot of its own, so others may act in between.
    """

    function: str
    before: str


@dataclass(frozen=True)
class Scenario:
    """A few sessions that meet in one database: the explorer plays them in every order there is."""

    name: str
    story: str
    sessions: Mapping[str, Program]
    setup: tuple[str, ...] = ()
    stops: tuple[VerbStop, ...] = ()
    follows: Mapping[str, tuple[str, int]] = field(default_factory=lambda: MappingProxyType({}))
    """Sessions that begin only after another has taken so many of its turns."""
    never_wait: frozenset[str] = frozenset()
    """Sessions that may never wait for another: a watchdog stalls no session, and no session stalls it."""
    sees_refusals: bool = True
    """Whether some order must end with a lease refused; one that never does is void."""
    is_quick: bool = False
    """Whether it is small enough for the quick form."""
