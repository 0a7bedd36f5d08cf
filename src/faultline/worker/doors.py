"""The doors of a worker: everything it needs of the outside, and the direct form, which is the database."""

import asyncio
import os
from asyncio import AbstractEventLoop
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import psycopg

from faultline.config import Settings, WorkerConfig
from faultline.errors import FaultlineError
from faultline.store.call import Call, Row
from faultline.store.connect import aconnect, agreet
from faultline.store.hosts import look_after
from faultline.store.lean import LOOK_AGAIN_SECONDS, Heard
from faultline.store.line import Early, Line, Taker
from faultline.worker.block import Lender
from faultline.worker.board import Board
from faultline.worker.lending import stores

T = TypeVar("T")


class Carrier(Protocol):
    """Carries one call at a time: a `Line` to the database, or to whoever speaks to it for us.

    Its errors are those of a `Line`: CannotConnect when nothing was sent, ServerUnavailable when nobody
    knows.
    """

    async def run(self, call: Call[T]) -> T: ...
    async def run_in_line(self, call: Call[T]) -> T: ...
    async def fetch(self, call: Call[Any], taker: Taker | None = None) -> list[Row]: ...
    def early(self, call: Call[Any]) -> Early | None: ...
    async def close(self) -> None: ...


class Lines(NamedTuple):
    """Three of them, so that nobody waits for a neighbour: a slow failure holds up no success."""

    claims: Carrier
    batches: Carrier
    singles: Carrier


@dataclass(frozen=True, slots=True)
class Pacing:
    """Which program is the pacemaker, and how it reaches whoever it beats to."""

    module: str
    told: dict[str, Any] = field(repr=False)
    """Told over a pipe, never on a command line: it may hold a password, or an API key."""


class Doors(Protocol):
    """What stands between a worker and its database; the worker asks for nothing else.

    A worker has one of these, and closes it when it leaves.
    """

    @property
    def far_side(self) -> str:
        """What a worker calls the other side, as the first words of a line in its log."""
        ...

    @property
    def listens(self) -> bool:
        """Whether wake-ups can be heard; else there is only the poll."""
        ...

    async def greet(self) -> None:
        """Raise, with the reason and the remedy, unless the other side is one that we can work with."""
        ...

    def lines(self, config: WorkerConfig) -> Lines: ...

    async def listen(self, heard: Heard, pause: Callable[[], float]) -> None:
        """Call `heard` with each queue that may have work, until cancelled."""
        ...

    def pacing(self) -> Pacing: ...

    def lender(self, board: Board, config: WorkerConfig, loop: AbstractEventLoop) -> Lender:
        """Who lends handlers the connections of job.transaction."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Direct:
    """The database itself: three lines, of which the one that claims listens, and one for the pacemaker."""

    settings: Settings
    _claims: list[Line] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.settings.require_dsn()

    @property
    def far_side(self) -> str:
        return "the database"

    @property
    def listens(self) -> bool:
        """Not behind a pooler that gives each transaction another session."""
        return self.settings.pooler != "transaction"

    async def greet(self) -> None:
        async with await aconnect(self.settings.require_dsn()) as conn:
            await agreet(conn)

    def lines(self, config: WorkerConfig) -> Lines:
        dsn, prepare = self.settings.require_dsn(), self.settings.pooler != "transaction"
        after = look_after(config.lease_for.total_seconds())
        batches, singles = (Line(dsn, prepare=prepare, look_after=after) for _ in range(2))
        claims = Line(dsn, prepare=prepare, raw_moments=True, look_after=after)
        self._claims[:] = [claims]
        return Lines(claims, batches, singles)

    async def listen(self, heard: Heard, pause: Callable[[], float]) -> None:
        """Wake-ups come to the line that claims: it is kept open while there is nothing to claim, too."""
        (claims,) = self._claims
        claims.tell(heard)
        while True:
            try:
                await claims.attend()
                await asyncio.sleep(LOOK_AGAIN_SECONDS)
                claims.look()
            except (FaultlineError, psycopg.Error):  # only a hint: whoever claims says what is wrong
                await asyncio.sleep(pause())

    def pacing(self) -> Pacing:
        return Pacing("faultline.worker.pacemaker", {"dsn": self.settings.require_dsn()})

    def lender(self, board: Board, config: WorkerConfig, loop: AbstractEventLoop) -> Lender:
        return lender_of(self.settings, board, config, loop)

    async def close(self) -> None:
        """Each line and each pool is closed by whoever uses it."""


def lender_of(settings: Settings, board: Board, config: WorkerConfig, loop: AbstractEventLoop) -> Lender:
    """Connections of the worker's own; where it knows no database, an error that says so."""
    pools = stores(settings.dsn, settings.pooler, threads=config.threads_max, coroutines=config.jobs_max)
    return Lender(*pools, board, loop, os.getpid(), settings.pooler != "transaction")
