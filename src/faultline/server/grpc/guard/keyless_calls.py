"""Calls without a key. Their few bytes come with the call: a late message makes room for another."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import grpc

from faultline.server.problems import MALFORMED, TOO_MANY, TOO_SLOW, RequestRefused

Context = grpc.aio.ServicerContext[Any, Any]

READ_MAX: Final = 32
"""Messages of such calls that are read at once: gRPC's library may hold 4 MiB for each."""
LINE_MAX: Final = 256
SECONDS_MAX: Final = 2.0
FRESH_SECONDS: Final = 0.02
"""The time that a message may take, however many other calls wait."""
LOOK_SECONDS: Final = 0.005


@dataclass(eq=False, slots=True)
class _Reading:
    address: str
    since: float
    ended: asyncio.Future[None]


class KeylessCalls:
    """Reads messages of calls without a key. A full set ends the oldest of the address with the most."""

    def __init__(self, most: int = READ_MAX, line_max: int = LINE_MAX) -> None:
        self._most = most
        self._line_max = line_max
        self._line = 0
        self._reading: list[_Reading] = []

    async def message(self, context: Context, address: str) -> Any:
        """The one message of such a call; RequestRefused for one that does not come."""
        await self._wait_for_a_place()
        loop = asyncio.get_running_loop()
        mine = _Reading(address, loop.time(), loop.create_future())
        self._reading.append(mine)
        read = asyncio.ensure_future(context.read())
        try:
            await asyncio.wait({read, mine.ended}, timeout=SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED)
            if not read.done():
                raise RequestRefused(TOO_SLOW, "no message came with this call, and others wait to be read")
            message = read.result()
        finally:
            read.cancel()
            self._reading.remove(mine)
        if message is grpc.aio.EOF:
            raise RequestRefused(MALFORMED, "a call brings one message; this one brought none")
        return message.parsed()

    async def _wait_for_a_place(self) -> None:
        if len(self._reading) < self._most:
            return
        if self._line >= self._line_max:
            raise RequestRefused(TOO_MANY, f"{self._line} probes wait to be read; ask again in a moment")
        self._line += 1
        try:
            while len(self._reading) >= self._most:
                self._end_one()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._line -= 1

    def _end_one(self) -> None:
        """End the oldest of the address that has the most, unless its message may be on its way."""
        of_address = Counter(one.address for one in self._reading if not one.ended.done())
        if not of_address:
            return
        greediest = max(of_address.values())
        now = asyncio.get_running_loop().time()
        for one in self._reading:  # the oldest first
            if of_address[one.address] == greediest and not one.ended.done():
                if now - one.since > FRESH_SECONDS:
                    one.ended.set_result(None)
                return
