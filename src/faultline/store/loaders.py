"""How replies are read where a call wants parts of them as they are on the wire."""

from typing import Any, Final

from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryLoader

from faultline.store.call import Call

_VERSION_BYTES: Final = 1
"""What stands before the text of a jsonb on the wire."""


class DocumentLoader(Loader):
    """A jsonb as the text it is sent as."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)[_VERSION_BYTES:]


def teach_raw(adapters: AdaptersMap, call: Call[Any]) -> None:
    """Read what comes back for this call as it says."""
    if call.raw_moments:
        adapters.register_loader("timestamptz", Int8BinaryLoader)
    if call.raw_documents:
        adapters.register_loader("jsonb", DocumentLoader)
