"""A way to the server that can be cut, slowed, silenced one way or both, and made to lose one reply."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from proof.nemesis.wire import Answers, Questions

CHUNK = 1 << 16
When = Literal["before", "after"]
Way = Literal["up", "down"]


@dataclass
class Trap:
    """Waits for a statement that contains one of these words, and cuts its connection, once."""

    words: tuple[str, ...]
    when: When
    sprung: asyncio.Event = field(default_factory=asyncio.Event)
    statement: str = ""
    line: str = ""
    carried_out: bool = False
    """The server had done it when its reply was thrown away: the client does not know the outcome."""

    def fits(self, statement: str) -> bool:
        return not self.sprung.is_set() and any(word in statement for word in self.words)


@dataclass(eq=False)
class ProxiedConnection:
    """One connection: the client's end, and ours to the server."""

    near: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    far: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    trap: Trap | None = None
    answers: Answers = field(default_factory=Answers)
    opened: float = field(default_factory=time.monotonic)
    last_statement: str = "nothing yet"

    def __str__(self) -> str:
        return f"open for {time.monotonic() - self.opened:.1f} s, last statement: {self.last_statement[:80]}"

    def cut(self) -> None:
        for _, writer in (self.near, self.far):
            _abort(writer)


class Link:
    """One client's line to the server; all its connections pass here, and share its faults."""

    def __init__(self, name: str, target: Callable[[], str]) -> None:
        self.name = name
        self.target = target
        """The server's DSN, read again for each connection: after a promotion it is another."""
        self.pairs: set[ProxiedConnection] = set()
        self.traps: list[Trap] = []
        self.delay = 0.0
        self.open = True
        self._flows = {"up": asyncio.Event(), "down": asyncio.Event()}
        self._server: asyncio.Server | None = None
        self._kept: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        for flow in self._flows.values():
            flow.set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=CHUNK)

    @property
    def dsn(self) -> str:
        """How a client connects: the same database, through this line."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return make_conninfo(
            self.target(), host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable"
        )

    def close_way(self) -> None:
        """Cut every connection, and refuse new ones."""
        self.open = False
        self.cut()

    def cut(self) -> int:
        """Cut every connection there is; answers how many."""
        pairs = list(self.pairs)
        for pair in pairs:
            pair.cut()
        return len(pairs)

    def stop_flow(self, way: Way) -> None:
        self._flows[way].clear()

    def half_open(self, end: Literal["near", "far"]) -> int:
        """Close one end of each connection silently; the other is kept until `heal`."""
        for pair in list(self.pairs):
            gone, left = (pair.near, pair.far) if end == "far" else (pair.far, pair.near)
            self._kept.append(left[1])
            self.pairs.discard(pair)
            _abort(gone[1])
        return len(self._kept)

    def heal(self) -> None:
        """Everything passes again; the ends that were left open are closed."""
        self.open, self.delay = True, 0.0
        for flow in self._flows.values():
            flow.set()
        for writer in self._kept:
            _abort(writer)
        self._kept.clear()

    async def stop(self) -> None:
        self.heal()
        self.close_way()
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far = await self._connect() if self.open else None
        except OSError:
            far = None
        if far is None:
            _abort(writer)
            return
        pair = ProxiedConnection((reader, writer), far)
        self.pairs.add(pair)
        pumps = [asyncio.create_task(self._carry_up(pair)), asyncio.create_task(self._carry_down(pair))]
        self._tasks.update(pumps)
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            self._tasks.difference_update(pumps)
            if pair in self.pairs:  # not half open: both ends go
                self.pairs.discard(pair)
                pair.cut()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        place = conninfo_to_dict(self.target())
        host, port = str(place["host"]), place.get("port", "5432")
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}", limit=CHUNK)
        return await asyncio.open_connection(host, int(str(port)), limit=CHUNK)

    async def _carry_up(self, pair: ProxiedConnection) -> None:
        questions = Questions()
        while data := await self._read(pair.near[0], "up"):
            for statement in questions.heard(data):
                pair.last_statement = statement
                trap = next((trap for trap in self.traps if trap.fits(statement)), None)
                if trap is not None:
                    trap.statement, trap.line = statement, self.name
                    if trap.when == "before":
                        self._spring(trap)
                        return
                    pair.trap, pair.answers = trap, Answers()
            await _write(pair.far[1], data)

    async def _carry_down(self, pair: ProxiedConnection) -> None:
        while data := await self._read(pair.far[0], "down"):
            trap = pair.trap
            if trap is None:
                await _write(pair.near[1], data)
            elif pair.answers.ended(data):
                trap.carried_out = not pair.answers.refused
                self._spring(trap)
                return

    def _spring(self, trap: Trap) -> None:
        trap.sprung.set()
        with contextlib.suppress(ValueError):
            self.traps.remove(trap)

    async def _read(self, reader: asyncio.StreamReader, way: Way) -> bytes:
        try:
            data = await reader.read(CHUNK)
        except OSError:
            return b""
        if data and self.delay:
            await asyncio.sleep(self.delay)
        await self._flows[way].wait()
        return data


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(OSError):
        writer.write(data)
        await writer.drain()


def _abort(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, RuntimeError):
        writer.transport.abort()
