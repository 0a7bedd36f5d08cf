"""The faults: how each kind is done to a running arena, and undone."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final

from proof.nemesis.faults import network, processes, replies, server
from proof.nemesis.plan import KINDS, Fault
from proof.nemesis.storm import Storm

Act = Callable[[Storm, Fault], Awaitable[str]]

ACTS: Final[Mapping[str, Act]] = MappingProxyType(
    {**processes.ACTS, **server.ACTS, **network.ACTS, **replies.ACTS}
)

assert ACTS.keys() == KINDS.keys(), ACTS.keys() ^ KINDS.keys()
