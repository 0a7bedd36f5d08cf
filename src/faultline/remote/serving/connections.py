"""Connections of the gRPC door: so many of one address, and none for long without a call that was let in.

gRPC's library bounds them in all and tells nothing of them. On Linux the process can see its own sockets:
those of the door are looked at each second, sooner while many come, and what has to go is shut down, which
the library takes for a client that left. Elsewhere only the library's own bounds hold.
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

from faultline.remote.serving.config import GrpcConfig
from faultline.server.addresses import Allowance, plain

LOOK_EVERY_SECONDS: Final = 1.0
GLANCE_EVERY_SECONDS: Final = 0.05
GROWN_SHARE: Final = 0.1
"""Of the connections that may be there without an admitted call: so many new ones are looked at, at once."""
FILES: Final = "/proc/self/fd"

Peer = tuple[str, int]


@dataclass(slots=True)
class Connection:
    """One open connection, by the descriptor and the inode of its socket."""

    fd: int
    inode: int
    peer: Peer | None
    """None for a socket that is not of this door."""
    since: float


class Connections:
    """Looks at the sockets of this process that belong to one port."""

    def __init__(self, config: GrpcConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._allowance = Allowance(
            config.connections_per_address, config.proxies, behind_proxy=config.behind_proxy
        )
        self._seconds_max = config.unadmitted_seconds_max
        self._unadmitted_max = config.unadmitted_max
        self._clock = clock
        self._port = 0
        self._known: dict[int, Connection] = {}
        self._admitted: set[Peer] = set()
        self.closed: Counter[str] = Counter()
        """Those that were closed, by reason."""

    def __len__(self) -> int:
        return sum(one.peer is not None for one in self._known.values())

    def admit(self, peer: str) -> None:
        """A call of this connection was let in; `peer` as gRPC writes it."""
        if (found := peer_of(peer)) is not None:
            self._admitted.add(found)

    def hang_up(self, peer: str) -> None:
        """Close the connection of a call whose answer is not being read: until then it stays in memory.

        gRPC's library keeps what was written, and a status after it, for as long as the connection is there.
        One of a proxy is left alone: it has the calls of others too.
        """
        far = peer_of(peer)
        if far is None or self._allowance.of(far[0]) is None:
            return
        for one in self._sockets(self._port):
            if one.peer == far:
                self._close(one, "unread")

    async def watch(self, port: int) -> None:
        """Look each second, and sooner while there are many new ones, until cancelled.

        4,000 connects a second without a key took every place there is between two looks.
        """
        grown = max(1, int(self._unadmitted_max * GROWN_SHARE))
        while True:
            self.look(port)
            before, until = _files(), time.monotonic() + LOOK_EVERY_SECONDS
            while time.monotonic() < until and _files() - before < grown:  # noqa: ASYNC110 - files have no event
                await asyncio.sleep(GLANCE_EVERY_SECONDS)
            await asyncio.sleep(0)

    def look(self, port: int) -> None:
        """See which connections there are, and close those that have to go."""
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
        # However many addresses they come from: the others are for those who show a key, at once as a rule.
        for one in unadmitted[: max(0, len(unadmitted) - self._unadmitted_max)]:
            self._close(one, "unadmitted")
        for address, theirs in of_address.items():
            most = self._allowance.of(address)
            if most is not None and len(theirs) > most:
                self._make_room(theirs, len(theirs) - most)

    def _make_room(self, theirs: list[Connection], many: int) -> None:
        """Close so many of one address: the oldest without a call that was let in, then the newest."""
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
            return Connection(fd, found.st_ino, _far_side(same, port), self._clock())

    def _close(self, one: Connection, reason: str) -> None:
        with suppress(OSError), socket.socket(fileno=os.dup(one.fd)) as same:
            # The descriptor may be another file by now; what we hold is of this inode or left alone.
            if os.fstat(same.fileno()).st_ino == one.inode:
                same.shutdown(socket.SHUT_RDWR)
                self.closed[reason] += 1


def _files() -> int:
    """How many files this process has open. Linux tells since 6.2; else they are counted, 5 ms for 2,000."""
    with suppress(OSError):
        return os.stat(FILES).st_size or len(os.listdir(FILES))  # noqa: PTH116, PTH208
    return 0


def _far_side(sock: socket.socket, port: int) -> Peer | None:
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        host, far_port, *_ = sock.getpeername()
        return (plain(host), far_port) if sock.getsockname()[1] == port else None
    except OSError:  # it listens
        return None


def peer_of(peer: str) -> Peer | None:
    """Address and port in gRPC's word for the other side; None for a socket in the file system.

    >>> peer_of("ipv4:127.0.0.1:5000"), peer_of("ipv6:%5B::ffff:127.0.0.1%5D:5000"), peer_of("unix:")
    (('127.0.0.1', 5000), ('127.0.0.1', 5000), None)
    """
    kind, _, rest = peer.partition(":")
    host, _, port = rest.rpartition(":")
    if kind not in ("ipv4", "ipv6") or not port.isdigit():
        return None
    return plain(host.replace("%5B", "").replace("%5D", "").strip("[]")), int(port)
