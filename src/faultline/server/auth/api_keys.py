"""API keys: made here, shown once, and then known only by their hash. Pure."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Final

SECRET_BYTES: Final = 32
_FORM: Final = re.compile(r"flk_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key: the only moment at which its text exists outside its owner's systems."""

    id: str
    text: str = field(repr=False)
    """The text that a client sends; not in the repr, because reprs end up in logs and tracebacks."""

    @property
    def hash(self) -> bytes:
        return hash_of(self.text)


def mint() -> NewKey:
    """Make a key: `flk_`, its id, and 32 random bytes.

    >>> key = mint()
    >>> id_of(key.text) == key.id, key.text in repr(key)
    (True, False)
    """
    id = secrets.token_hex(6)
    return NewKey(id, f"flk_{id}_{secrets.token_urlsafe(SECRET_BYTES)}")


def id_of(presented: str) -> str | None:
    """The id in a key's text; None for a text that is not in the form of our keys.

    >>> id_of("flk_c0ffee") is None
    True
    """
    form = _FORM.fullmatch(presented)
    return form[1] if form else None


def hash_of(text: str) -> bytes:
    """The stored form of a key. It holds 256 random bits, so one round of SHA-256 is safe from guessing."""
    return hashlib.sha256(text.encode()).digest()
