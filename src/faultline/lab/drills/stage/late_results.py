"""A worker's backend through which one result comes late: it waits at a barrier on its way."""

import asyncio

from faultline.config import Settings
from faultline.lab.drills.stage.stdin_barriers import StdinBarriers
from faultline.remote.remote_backend import RemoteBackend
from faultline.remote.server_address import ServerAddress
from faultline.store.rows import SettleRefusal
from faultline.telemetry import emit
from faultline.worker.attempt import Attempt


class LateBackend(RemoteBackend):
    """The ordinary backend; with a barrier, the first batch of results is held there.

    Everything else of the worker goes on.
    """

    def __init__(self, address: ServerAddress, gates: StdinBarriers, barrier: str | None) -> None:
        super().__init__(address, Settings())
        self._gates = gates
        self._barrier = barrier

    async def settle_many(self, attempts: list[Attempt]) -> list[SettleRefusal]:
        barrier, self._barrier = self._barrier, None
        if barrier is not None:
            emit("result_held", job_id=attempts[0].job_id, token=attempts[0].token)
            await asyncio.to_thread(self._gates.pass_through, barrier)
        return await super().settle_many(attempts)
