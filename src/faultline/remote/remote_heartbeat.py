"""The pacemaker of a worker over a server: the ordinary one, with beats as calls to the server.

Started as `python -m faultline.remote.remote_heartbeat FD SLOTS`, like the ordinary one.
"""

from collections.abc import Sequence
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

import grpc

from faultline.lease import Lease
from faultline.remote.call_messages import beaten, milliseconds, proof
from faultline.remote.channel import metadata, named, open_plain_channel
from faultline.remote.server_address import ServerAddress
from faultline.rpc.v1.worker_pb2 import Beat, HeartbeatRequest
from faultline.rpc.v1.worker_pb2_grpc import WorkersStub
from faultline.store.rows import HeartbeatResult
from faultline.worker.heartbeat.pacemaker import main

PATIENCE_SECONDS_MIN: Final = 0.1
BEAT_SECONDS_MIN: Final = 0.5


class HeartbeatTry(NamedTuple):
    """One request of a beat: the number of its replica, and its channel."""

    place: int
    channel: grpc.Channel
    call: Any


class RemoteHeartbeatSender:
    """Beats to the replica that answers first, over channels of its own: no handler can block it.

    A beat begins with the replica that answered last. When a replica is silent for a sixth of a lease, or
    refuses, the next one is asked as well, at once and over a new connection: a frozen
    replica costs a sixth of a lease, not the job. With one address the new connection may reach another
    replica behind a balancer. A beat that arrives twice renews the lease twice, which harms nothing.
    """

    def __init__(self, address: ServerAddress, lease: float) -> None:
        self._address = address
        self._tries = max(2, len(address.targets))
        # All tries fit between a third of a lease, when a beat is due, and its end.
        self._patience = max(PATIENCE_SECONDS_MIN, min(lease / 6, lease * 0.4 / (self._tries - 1)))
        self._timeout = max(BEAT_SECONDS_MIN, lease / 3)
        self._place = 0
        self._channel: grpc.Channel | None = None

    def connect(self) -> None:
        if self._channel is None:
            self._channel = self._open(self._place)

    def beat(self, leases: Sequence[Lease], lease: timedelta, worker: int | None) -> list[HeartbeatResult]:
        assert self._channel is not None
        proofs = [proof(lease) for lease in leases]
        request = HeartbeatRequest(worker=worker or 0, beat=Beat(leases=proofs), lease_ms=milliseconds(lease))
        return beaten(proofs, self._first_answer(request))

    def _first_answer(self, request: HeartbeatRequest) -> Any:
        """Ask replica after replica without cancelling the earlier requests, and give the first answer."""
        ended: SimpleQueue[HeartbeatTry] = SimpleQueue()
        tries: list[HeartbeatTry] = []
        trouble: Any = None
        failed = 0
        try:
            while failed < self._tries:
                if len(tries) < self._tries:
                    tries.append(self._begin(len(tries), request, ended))
                try:
                    done = ended.get(timeout=self._patience if len(tries) < self._tries else None)
                except Empty:
                    continue
                if trouble := done.call.exception():
                    failed += 1
                    continue
                self._place, self._channel = done.place, done.channel
                return done.call.result()
            raise named(trouble, self._target(self._place), sent=True) from trouble
        finally:
            for one in tries:
                if one.channel is not self._channel:
                    one.channel.close()

    def _begin(
        self, number: int, request: HeartbeatRequest, ended: "SimpleQueue[HeartbeatTry]"
    ) -> HeartbeatTry:
        place = self._place + number
        channel = self._channel if number == 0 and self._channel else self._open(place)
        stub: Any = WorkersStub(channel)  # type: ignore[no-untyped-call]
        call = stub.Heartbeat.future(request, timeout=self._timeout, metadata=metadata(self._address))
        begun = HeartbeatTry(place, channel, call)
        call.add_done_callback(lambda _: ended.put(begun))
        return begun

    def _open(self, place: int) -> grpc.Channel:
        return open_plain_channel(self._address, self._target(place))

    def _target(self, place: int) -> str:
        return self._address.targets[place % len(self._address.targets)]

    def hang_up(self) -> None:
        """After a failure the next replica gets its turn."""
        if self._channel is not None:
            self._channel.close()
            self._place += 1
        self._channel = None


def speak(said: dict[str, Any]) -> RemoteHeartbeatSender:
    return RemoteHeartbeatSender(ServerAddress.heard(said["server"]), said["lease"])


if __name__ == "__main__":
    main(speak)
