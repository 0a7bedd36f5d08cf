"""Credentials: what a request or a call shows of its caller."""

from typing import NamedTuple


class Credentials(NamedTuple):
    """A key and an address, as one API read them. The repr hides the key."""

    api: str
    """`HTTP` or `gRPC`, for the log."""
    key: str | None
    address: str
    passed_on: bool
    """Whether a proxy passed the request on: then the address is not the client's."""

    def __repr__(self) -> str:
        return f"Credentials(api={self.api!r}, address={self.address!r}, passed_on={self.passed_on!r})"
