"""A small breakage of the shipped SQL, and where the explorer must find it."""

from dataclasses import dataclass
from typing import Final

from proof.explorer.rewriting import Edit

LOCKED: Final = "for no key update;"
SKIPPED: Final = "for no key update skip locked"


@dataclass(frozen=True)
class ExplorerMutant:
    """One mechanism taken away, and where that must show."""

    name: str
    edits: tuple[Edit, ...]
    scenario: str
    breaks: str
    """The invariant that must turn out broken."""
