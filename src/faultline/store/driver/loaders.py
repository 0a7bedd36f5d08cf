"""Loaders for calls that read some values in wire format."""

from typing import Any, Final

from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryLoader

from faultline.store.call import Call

_VERSION_BYTES: Final = 1
"""The version byte before the text of a jsonb on the wire."""


class DocumentLoader(Loader):
    """Reads a jsonb as the text on the wire."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)[_VERSION_BYTES:]


def register_raw_types(adapters: AdaptersMap, call: Call[Any]) -> None:
    """Register the loaders that a call asks for."""
    if call.raw_moments:
        adapters.register_loader("timestamptz", Int8BinaryLoader)
    if call.raw_documents:
        adapters.register_loader("jsonb", DocumentLoader)
