"""A way to the server that can be cut: a TCP proxy on 127.0.0.1, with one thread a connection.

It knows just enough of the protocol to cut around a statement: before it arrives, or after it was carried out
and before its reply comes back. What is to be recognised must be sent as text, so ask for
`pooler="transaction"`, where statements are not prepared.
"""

import contextlib
import select
import socket
import struct
import threading
from types import TracebackType
from typing import Literal, Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

When = Literal["before", "after"]


class Proxy:
    """Carries bytes both ways until told otherwise."""

    def __init__(self, dsn: str) -> None:
        self._target = conninfo_to_dict(dsn)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._open = True
        self._flowing = threading.Event()
        self._flowing.set()
        self._rule: tuple[bytes, When] | None = None
        self.cuts = 0
        """How often a rule has fired: a test in which nothing was cut shows nothing."""
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def dsn(self) -> str:
        """The same database, through the proxy."""
        return make_conninfo(
            **{**self._target, "host": "127.0.0.1", "port": self._listener.getsockname()[1],
               "sslmode": "disable", "gssencmode": "disable"}
        )  # fmt: skip

    def cut(self, statement: str, when: When) -> None:
        """Once, cut the connection that sends this: before it is forwarded, or after it was carried out."""
        self._rule = (statement.encode(), when)

    def close_way(self) -> None:
        """Cut every connection, and refuse new ones."""
        self._open = False
        self._drop_all()

    def reset(self) -> None:
        """Cut every connection, and not in the polite way: what was under way is lost on both sides."""
        with self._lock:
            for near, _ in self._pairs:
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._drop_all()

    def open_way(self) -> None:
        self._open = True

    def hold(self) -> None:
        """Carry nothing, and say nothing: a network that swallows."""
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._open:
                threading.Thread(target=self._carry, args=[near], daemon=True).start()
            else:
                near.close()

    def _connect(self) -> socket.socket:
        host, port = str(self._target.get("host", "")), self._target.get("port", 5432)
        if host.startswith("/"):
            far = socket.socket(socket.AF_UNIX)
            far.connect(f"{host}/.s.PGSQL.{port}")
            return far
        return socket.create_connection((host, int(str(port))))

    def _carry(self, near: socket.socket) -> None:
        try:
            far = self._connect()
        except OSError:
            near.close()
            return
        pair = (near, far)
        with self._lock:
            self._pairs.add(pair)
        # Asked once more, now that all are dropped together: the way may have been closed since it came in.
        if self._open:
            with contextlib.suppress(OSError, ValueError):
                self._pump(near, far)
        self._drop(pair)

    def _pump(self, near: socket.socket, far: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([near, far], [], [])
            self._flowing.wait()
            for source in ready:
                data = source.recv(1 << 16)
                if not data:
                    return
                if source is near and self._fires(data):
                    self._fire(near, far, data)
                    return
                (far if source is near else near).sendall(data)

    def _fires(self, data: bytes) -> bool:
        with self._lock:
            return self._rule is not None and self._rule[0] in data

    def _fire(self, near: socket.socket, far: socket.socket, data: bytes) -> None:
        with self._lock:
            assert self._rule is not None
            when, self._rule = self._rule[1], None
            self.cuts += 1
        if when == "after":
            far.sendall(data)
            self._await_ready(far)

    @staticmethod
    def _await_ready(far: socket.socket) -> None:
        """Until the server says ReadyForQuery: by then it has committed, or refused."""
        said = b""
        while not (len(said) >= 6 and said[-6:-1] == b"Z\x00\x00\x00\x05"):
            data = far.recv(1 << 16)
            if not data:
                return
            said += data

    def _drop_all(self) -> None:
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            self._drop(pair)

    def _drop(self, pair: tuple[socket.socket, socket.socket]) -> None:
        with self._lock:
            self._pairs.discard(pair)
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flowing.set()
        self._open = False
        self._listener.close()
        self._drop_all()
