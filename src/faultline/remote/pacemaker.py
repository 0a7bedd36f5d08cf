"""The pacemaker of a worker that works over a server: the ordinary one, whose beats are calls to it.

Started as `python -m faultline.remote.pacemaker FD SLOTS`, as the ordinary one is.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import grpc

from faultline.lease import Lease
from faultline.remote.address import Address
from faultline.remote.channel import metadata, named, open_plain_channel
from faultline.remote.words import beaten, milliseconds
from faultline.rpc.v1.worker_pb2 import Beat, HeartbeatRequest, Proof
from faultline.rpc.v1.worker_pb2_grpc import WorkersStub
from faultline.store import rows
from faultline.worker.pacemaker import main

BEAT_SECONDS_MIN: Final = 0.5


class RemoteMouth:
    """Beats to whichever replica answers, over a channel of its own: no handler can hold it up."""

    def __init__(self, address: Address, lease: float) -> None:
        self._address = address
        # It gives up in time for another replica to save the leases.
        self._timeout = max(BEAT_SECONDS_MIN, lease / 3)
        self._place = 0
        self._channel: grpc.Channel | None = None

    @property
    def _target(self) -> str:
        return self._address.targets[self._place % len(self._address.targets)]

    def connect(self) -> None:
        if self._channel is None:
            self._channel = open_plain_channel(self._address, self._target)

    def beat(self, leases: Sequence[Lease], lease: timedelta, worker: int | None) -> list[rows.Beat]:
        assert self._channel is not None
        proofs = [Proof(job_id=held.job_id, token=held.token, claim=held.claim.bytes) for held in leases]
        request = HeartbeatRequest(worker=worker or 0, beat=Beat(leases=proofs), lease_ms=milliseconds(lease))
        try:
            stub: Any = WorkersStub(self._channel)  # type: ignore[no-untyped-call]
            answer = stub.Heartbeat(request, timeout=self._timeout, metadata=metadata(self._address))
        except grpc.RpcError as fault:
            raise named(fault, self._target, sent=True) from fault
        return rows.beats(beaten(proofs, answer))

    def hang_up(self) -> None:
        """After trouble the next replica gets its turn."""
        if self._channel is not None:
            self._channel.close()
            self._place += 1
        self._channel = None


def speak(said: dict[str, Any]) -> RemoteMouth:
    return RemoteMouth(Address.heard(said["server"]), said["lease"])


if __name__ == "__main__":
    main(speak)
