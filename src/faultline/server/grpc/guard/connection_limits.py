"""Connections of the gRPC server: a bound for each address, and a bound on time without an admitted call.

gRPC's library bounds them in total and reports nothing of them. On Linux the process can see its own
sockets: those of the server are examined each second, sooner while many come. A connection over a bound
is shut down, which the library takes for a client that left. Elsewhere only the library's bounds hold.
"""

import asyncio
import os
import socket
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from faultline.server.grpc.grpc_config import GrpcConfig
from faultline.server.listener.address_limits import AddressAllowance, plain

LOOK_EVERY_SECONDS: Final = 1.0
GLANCE_EVERY_SECONDS: Final = 0.05
GROWN_SHARE: Final = 0.1
"""New connections, as a part of those without an admitted call, that start an examination at once."""
FILES: Final = "/proc/self/fd"

Peer = tuple[str, int]


@dataclass(slots=True)
class Connection:
    """One open connection, by the descriptor and the inode of its socket."""

    fd: int
    inode: int
    peer: Peer | None
    """The address and port of the client; None for a socket of another port."""
    since: float


class Connections:
    """Examines the sockets of this process that belong to one port."""

    def __init__(self, config: GrpcConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._allowance = AddressAllowance(
            config.connections_per_address, config.proxies, behind_proxy=config.behind_proxy
        )
        self._seconds_max = config.unadmitted_seconds_max
        self._unadmitted_max = config.unadmitted_max
        self._clock = clock
        self._port = 0
        self._known: dict[int, Connection] = {}
        self._admitted: set[Peer] = set()
        self.closed: Counter[str] = Counter()
        """Closed connections, by reason."""

    def __len__(self) -> int:
        return sum(one.peer is not None for one in self._known.values())

    def admit(self, peer: str) -> None:
        """A call of this connection was admitted; `peer` as gRPC writes it."""
        if (found := peer_of(peer)) is not None:
            self._admitted.add(found)

    def hang_up(self, peer: str) -> None:
        """Close the connection of a call with an unread answer: until then the answer stays in memory.

        gRPC's library keeps the written bytes, and a status after them, for as long as the connection exists.
        A proxy's connection is left alone: it has the calls of others too.
        """
        far = peer_of(peer)
        if far is None or self._allowance.of(far[0]) is None:
            return
        for one in self._sockets(self._port):
            if one.peer == far:
                self._close(one, "unread")

    async def watch(self, port: int) -> None:
        """Examine each second, and sooner while there are many new ones, until cancelled.

        4,000 connects a second without a key took every place between two examinations.
        """
        grown = max(1, int(self._unadmitted_max * GROWN_SHARE))
        while True:
            self.look(port)
            before, until = _files(), time.monotonic() + LOOK_EVERY_SECONDS
            while time.monotonic() < until and _files() - before < grown:  # noqa: ASYNC110 - files have no event
                await asyncio.sleep(GLANCE_EVERY_SECONDS)
            await asyncio.sleep(0)

    def look(self, port: int) -> None:
        """Read the open connections, and close those over a bound."""
        self._port = port
        self._known = {one.inode: one for one in self._sockets(port)}
        self._admitted &= {one.peer for one in self._known.values() if one.peer is not None}
        of_address: dict[str, list[Connection]] = {}
        unadmitted: list[Connection] = []
        for one in sorted(self._known.values(), key=lambda known: known.since):
            if one.peer is None:
                continue
            of_address.setdefault(one.peer[0], []).append(one)
            if one.peer in self._admitted:
                continue
            if self._clock() - one.since > self._seconds_max:
                self._close(one, "unadmitted")
            else:
                unadmitted.append(one)
        # Whatever their addresses: the other places are for clients with a key, shown at once as a rule.
        for one in unadmitted[: max(0, len(unadmitted) - self._unadmitted_max)]:
            self._close(one, "unadmitted")
        for address, theirs in of_address.items():
            most = self._allowance.of(address)
            if most is not None and len(theirs) > most:
                self._make_room(theirs, len(theirs) - most)

    def _make_room(self, theirs: list[Connection], many: int) -> None:
        """Close this many of one address: the oldest without an admitted call, then the newest."""
        waiting = [one for one in theirs if one.peer not in self._admitted]
        known = [one for one in reversed(theirs) if one.peer in self._admitted]
        for one in [*waiting, *known][:many]:
            self._close(one, "address")

    def _sockets(self, port: int) -> Iterator[Connection]:
        with suppress(OSError):
            for name in os.listdir(FILES):  # noqa: PTH208 - numbers, not paths
                with suppress(OSError):  # closed meanwhile
                    if found := self._socket(int(name), port):
                        yield found

    def _socket(self, fd: int, port: int) -> Connection | None:
        found = os.fstat(fd)
        if not stat.S_ISSOCK(found.st_mode):
            return None
        known = self._known.get(found.st_ino)
        if known is not None and known.fd == fd:
            return known
        with socket.socket(fileno=os.dup(fd)) as same:
            return Connection(fd, found.st_ino, _peer_of_socket(same, port), self._clock())

    def _close(self, one: Connection, reason: str) -> None:
        with suppress(OSError), socket.socket(fileno=os.dup(one.fd)) as same:
            # The descriptor may be another file by now: only one with this inode is shut down.
            if os.fstat(same.fileno()).st_ino == one.inode:
                same.shutdown(socket.SHUT_RDWR)
                self.closed[reason] += 1


def _files() -> int:
    """The number of this process's open files. Linux tells it since 6.2; counting takes 5 ms for 2,000."""
    with suppress(OSError):
        return os.stat(FILES).st_size or len(os.listdir(FILES))  # noqa: PTH116, PTH208
    return 0


def _peer_of_socket(sock: socket.socket, port: int) -> Peer | None:
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        host, far_port, *_ = sock.getpeername()
        return (plain(host), far_port) if sock.getsockname()[1] == port else None
    except OSError:  # it listens
        return None


def peer_of(peer: str) -> Peer | None:
    """Address and port in gRPC's name of the peer; None for a socket in the file system.

    >>> peer_of("ipv4:127.0.0.1:5000"), peer_of("ipv6:%5B::ffff:127.0.0.1%5D:5000"), peer_of("unix:")
    (('127.0.0.1', 5000), ('127.0.0.1', 5000), None)
    """
    kind, _, rest = peer.partition(":")
    host, _, port = rest.rpartition(":")
    if kind not in ("ipv4", "ipv6") or not port.isdigit():
        return None
    return plain(host.replace("%5B", "").replace("%5D", "").strip("[]")), int(port)
