"""A worker's door to a server through which one result comes late: it waits at a barrier on its way."""

import asyncio
from typing import Any, TypeVar

from faultline.config import Settings, WorkerConfig
from faultline.drills.gates import Gates
from faultline.remote.address import Address
from faultline.remote.doors import Remote
from faultline.store.call import Call, Row
from faultline.store.line import Early, Taker
from faultline.telemetry import emit
from faultline.worker.doors import Carrier, Lines

T = TypeVar("T")


class LateDoors(Remote):
    """The ordinary doors; with a barrier, the first batch of results is held there."""

    def __init__(self, address: Address, gates: Gates, barrier: str | None) -> None:
        super().__init__(address, Settings())
        self._gates = gates
        self._barrier = barrier

    def lines(self, config: WorkerConfig) -> Lines:
        lines = super().lines(config)
        if self._barrier is None:
            return lines
        return lines._replace(batches=LateLine(lines.batches, self._gates, self._barrier))


class LateLine:
    """Holds back the first results that it is to carry, while everything else of the worker goes on."""

    def __init__(self, line: Carrier, gates: Gates, barrier: str) -> None:
        self._line = line
        self._gates = gates
        self._barrier: str | None = barrier

    async def run(self, call: Call[T]) -> T:
        return call.read(await self.fetch(call))

    async def run_in_line(self, call: Call[T]) -> T:
        return await self.run(call)

    async def fetch(self, call: Call[Any], taker: Taker | None = None) -> list[Row]:
        if self._barrier is not None and call.args["ids"].values:
            barrier, self._barrier = self._barrier, None
            emit("result_held", job_id=call.args["ids"].values[0], token=call.args["tokens"].values[0])
            await asyncio.to_thread(self._gates.pass_through, barrier)
        return await self._line.fetch(call, taker)

    def early(self, call: Call[Any]) -> Early | None:
        return self._line.early(call)

    async def close(self) -> None:
        await self._line.close()
