"""The doors of a worker to a server: one stream for all its lines, another way for its pacemaker."""

import asyncio
import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable

from faultline.config import Settings, WorkerConfig
from faultline.remote.address import Address
from faultline.remote.exchange import Exchange
from faultline.remote.line import RemoteLine
from faultline.store.lean import Heard
from faultline.worker.block import Lender
from faultline.worker.board import Board
from faultline.worker.doors import Lines, Pacing, lender_of

log = logging.getLogger("faultline.worker")


class Remote:
    """A server, or any of its replicas. The database's address is needed for job.transaction alone.

    >>> doors = Remote(Address.read("grpc://localhost:8001"), Settings())
    >>> doors.far_side, doors.pacing().module
    ('the server', 'faultline.remote.pacemaker')
    """

    far_side = "the server"
    listens = True

    def __init__(self, address: Address, settings: Settings) -> None:
        self._address = address
        self._settings = settings
        self._exchange = Exchange(address)

    async def greet(self) -> None:
        await self._exchange.greet()

    def lines(self, config: WorkerConfig) -> Lines:
        return Lines(*(RemoteLine(self._exchange, config) for _ in Lines._fields))

    async def listen(self, heard: Heard, pause: Callable[[], float]) -> None:
        """Wake-ups come over the stream, which whoever speaks next opens again when it has broken."""
        self._exchange.tell(heard)
        await asyncio.Event().wait()

    def pacing(self) -> Pacing:
        return Pacing("faultline.remote.pacemaker", {"server": self._address.told()})

    def lender(self, board: Board, config: WorkerConfig, loop: AbstractEventLoop) -> Lender:
        return lender_of(self._settings, board, config, loop)

    async def close(self) -> None:
        await self._exchange.close()
