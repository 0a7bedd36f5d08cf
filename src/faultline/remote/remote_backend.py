"""RemoteBackend: a worker's backend that is a server; each verb is a message of the protocol."""

import asyncio
import logging
import os
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from typing import Any, Final

import faultline
from faultline.config import Settings, WorkerConfig
from faultline.errors import ConfigError, FaultlineError, LeaseLost
from faultline.lease import Lease
from faultline.outcome import Outcome
from faultline.remote import call_messages, settle_messages
from faultline.remote.replica_session import ReplicaSession
from faultline.remote.server_address import ServerAddress
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.store.call import Row
from faultline.store.driver.async_connection import Heard
from faultline.store.limit_sync import limits_of
from faultline.store.rows import HeartbeatResult, SettleRefusal, SyncedSchedule
from faultline.store.session import ReplyHandler
from faultline.task import Registry
from faultline.worker.attempt import Attempt
from faultline.worker.backend import ClaimParams, LeaseName, PacemakerSpec, leases_of, still_held
from faultline.worker.claiming.unserved_tasks import LEFT_MAX
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.settlement.settle import needs_state
from faultline.worker.transactions.pools import pools_of
from faultline.worker.transactions.transaction_base import TransactionPools

log = logging.getLogger("faultline.worker")

BUSY_PAUSE: Final = 0.05
"""The pause before another try on a locked row; the database would have waited."""


class RemoteBackend:
    """A server, or any of its replicas: one stream for all verbs, and another channel for the pacemaker.

    The settings hold the database's address, which only job.complete needs.

    >>> backend = RemoteBackend(ServerAddress.read("grpc://localhost:8001"), Settings())
    >>> backend.peer_name, backend.pacemaker().module
    ('the server', 'faultline.remote.remote_heartbeat')
    """

    peer_name = "the server"
    listens = True
    _config: WorkerConfig

    def __init__(self, address: ServerAddress, settings: Settings) -> None:
        self._address = address
        self._settings = settings
        self._session = ReplicaSession(address)
        self._worker = 0
        self._recorded: LeaseLost | None = None
        """The last refusal of a single outcome: the server recorded it as it refused."""

    def open(self, config: WorkerConfig) -> None:
        self._config = config

    async def check_server(self) -> None:
        await self._session.check_server()

    async def register(self, name: str, tasks: Sequence[str] | None) -> int:
        config = self._config
        hello = rpc.Hello(
            protocol=call_messages.PROTOCOL, name=name, host=socket.gethostname(), pid=os.getpid(),
            version=faultline.__version__, queues=list(config.queues), slots=config.jobs_max,
            lease_ms=call_messages.milliseconds(config.lease_for),
            timeout_ms=call_messages.milliseconds(config.timeout), wakes=True, tasks=tasks,
        )  # fmt: skip
        self._worker = (await self._session.hello(hello)).worker
        return self._worker

    async def know_tasks(self, tasks: Sequence[str] | None) -> None:
        await self._session.know_tasks(tasks or [])

    async def declare_limits(self, tasks: Registry) -> int:
        """The protocol has no message for it: limits are set where the database is reached."""
        if names := sorted(limits_of(tasks)):
            log.info(
                "limits of this app (%s) are not declared by a worker behind a server; run `faultline limits "
                "sync APP` where the database is reached", ", ".join(names[:5]),
            )  # fmt: skip
        return 0

    async def sync_schedules(
        self, app: str, release: Sequence[int], specs: Sequence[dict[str, Any]]
    ) -> list[SyncedSchedule]:
        """Not over the protocol: a key that works may not say what is enqueued in its app's name."""
        if specs:
            log.warning(
                "this worker has no database: the %d schedules of app %s are not told to it. A worker with a "
                "DSN does that, or `faultline schedules sync MODULE:APP`", len(specs), app,
            )  # fmt: skip
        return []

    async def warm_up(self) -> None:
        """Do nothing: the server is warm."""

    async def listen(self, heard: Heard, pause: Callable[[], float]) -> None:
        """Wake-ups come over the stream; after a break, the next call opens it again."""
        self._session.tell(heard)
        await asyncio.Event().wait()

    async def claim(self, params: ClaimParams, handler: ReplyHandler) -> None:
        handler.take(await self._ask(params))

    def prepare_claim(self, params: ClaimParams) -> None:
        """Do nothing: the server pushes jobs, so a claim ahead of time has no use."""

    async def recover_claim(self, params: ClaimParams) -> list[Row] | None:
        rows = await self._ask(params, resend=True)
        return still_held(rows, await self.heartbeat(leases_of(rows, params.claim))) if rows else None

    async def _ask(self, params: ClaimParams, *, resend: bool = False) -> list[Row]:
        ask = call_messages.ask(params, self._session.limits, resend=resend)
        return call_messages.claimed(await self._session.ask(rpc.FromWorker(ask=ask)), self._config.lease_for)

    async def heartbeat(self, leases: Sequence[Lease]) -> list[HeartbeatResult]:
        proofs = [call_messages.proof(lease) for lease in leases]
        answer = await self._session.ask(rpc.FromWorker(beat=rpc.Beat(leases=proofs)))
        return call_messages.beaten(proofs, answer)

    async def settle_many(self, attempts: list[Attempt]) -> list[SettleRefusal]:
        """A few parcels at once: while the database records one, the server reads the next."""
        limits = self._session.limits
        outcomes = [attempt.outcome for attempt in attempts if attempt.outcome is not None]
        parcels = list(settle_messages.parcels(settle_messages.many(attempts, outcomes), limits))
        turns = asyncio.Semaphore(settle_messages.at_once(limits))

        async def settle(parcel: rpc.FromWorker) -> list[SettleRefusal]:
            async with turns:
                return settle_messages.answers(parcel.results.items, await self._session.ask(parcel))

        answered = await asyncio.gather(*map(settle, parcels), return_exceptions=True)
        return settle_messages.together(parcels, answered)

    async def settle(self, lease: Lease, outcome: Outcome) -> str | None:
        said = settle_messages.one(lease, outcome)
        while True:
            try:
                settle_messages.check(await self._session.ask(said))
            except settle_messages.RemoteRowBusy:
                await asyncio.sleep(BUSY_PAUSE)
            except LeaseLost as lost:
                self._recorded = lost
                raise
            else:
                return await self._state_after(lease) if needs_state(outcome) else None

    async def _state_after(self, lease: Lease) -> str | None:
        """The answer to a settling does not tell whether the job is dead now: the ledger does."""
        try:
            return await self.outcome(lease)
        except FaultlineError:
            return None  # it is recorded all the same; only the log knows less

    async def outcome(self, lease: Lease) -> str:
        return await self._outcome(lease)

    async def outcome_in(self, lease: Lease) -> str:
        return await self._outcome(lease, in_own_transaction=True)

    async def note_error(self, lease: Lease, error: str) -> bool:
        """Not over a server: the worker's log has it."""
        return False

    async def _outcome(self, lease: Lease, *, in_own_transaction: bool = False) -> str:
        request = rpc.OutcomeRequest(
            leases=[call_messages.proof(lease)], in_own_transaction=in_own_transaction
        )
        response = await self._session.call("Outcome", request)
        return call_messages.ENDS.get(response.ends[0], "gone")

    async def record_refusal(self, lease: Lease) -> tuple[str, int | None]:
        lost, self._recorded = self._recorded, None
        if lost is not None and (lost.job_id, lost.token) == lease[:2]:
            return lost.reason, lost.current_token
        request = rpc.RefusedRequest(
            worker=self._worker, job_id=lease.job_id, token=lease.token, claim=lease.claim.bytes
        )
        return settle_messages.refused(await self._session.call("Refused", request))

    async def newest_place(self) -> int | None:
        try:
            return int((await self._session.call("NewestPlace", rpc.NewestPlaceRequest())).place)
        except ConfigError:  # a server of an earlier version
            return None

    async def others_serve(self, queue: str) -> bool:
        """No, where the server takes fewer exceptions than a worker makes: their jobs are put off instead."""
        if self._session.limits.except_tasks_max < LEFT_MAX:
            return False
        request = rpc.OthersServeRequest(worker=self._worker, queue=queue)
        try:
            response = await self._session.call("OthersServe", request)
        except ConfigError:  # an earlier version of a replica took over meanwhile
            return False
        return bool(response.others)

    async def recovery_seconds(self, leases: Sequence[LeaseName]) -> list[float]:
        request = rpc.FiguresRequest(granted=call_messages.names(leases))
        return list((await self._session.call("Figures", request)).recovery_seconds)

    async def zombie_seconds(self, leases: Sequence[LeaseName]) -> list[float]:
        request = rpc.FiguresRequest(refused=call_messages.names(leases))
        return list((await self._session.call("Figures", request)).zombie_seconds)

    async def deregister(self) -> None:
        """Do nothing: the stream says goodbye as it closes."""

    def pacemaker(self) -> PacemakerSpec:
        return PacemakerSpec("faultline.remote.remote_heartbeat", {"server": self._address.told()})

    def transaction_pools(
        self, lease_table: LeaseTable, config: WorkerConfig, loop: AbstractEventLoop
    ) -> TransactionPools:
        return pools_of(self._settings, lease_table, config, loop)

    async def close(self) -> None:
        await self._session.close()
