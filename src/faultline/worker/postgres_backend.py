"""PostgresBackend: a worker's backend that is the database itself."""

import asyncio
import contextlib
import os
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

import faultline
from faultline.config import Settings, WorkerConfig
from faultline.errors import FaultlineError
from faultline.lease import Lease
from faultline.outcome import Outcome
from faultline.store import calls, limit_sync
from faultline.store.call import Call, Row
from faultline.store.driver.async_connection import Heard
from faultline.store.driver.connect import acheck_server, aconnect
from faultline.store.driver.exchange import LOOK_AGAIN_SECONDS
from faultline.store.rows import ClaimedRow, HeartbeatResult, SettleRefusal, SyncedSchedule
from faultline.store.servers.hosts import look_after
from faultline.store.session import DbSession, PipelinedCall, ReplyHandler
from faultline.task import Registry
from faultline.worker.attempt import Attempt
from faultline.worker.backend import ClaimParams, LeaseName, PacemakerSpec, leases_of, still_held
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.settlement.settle import MANY, done_many, settle
from faultline.worker.transactions.pools import pools_of
from faultline.worker.transactions.transaction_base import TransactionPools


class PostgresBackend:
    """Three connections: one claims and listens, one records successes, one does all the rest.

    So a slow failure holds up no success and no claim. The pacemaker has a connection of its own.
    """

    peer_name = "the database"
    _config: WorkerConfig
    _worker: int
    _claims: DbSession
    _successes: DbSession
    _rest: DbSession

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._dsn = settings.require_dsn()

    @property
    def listens(self) -> bool:
        """Not behind a pooler that gives each transaction another session."""
        return self._settings.pooler != "transaction"

    def open(self, config: WorkerConfig) -> None:
        after, prepare = look_after(config.lease_for.total_seconds()), self.listens
        self._config = config
        self._claims = DbSession(self._dsn, prepare=prepare, raw_moments=True, look_after=after)
        self._successes = DbSession(self._dsn, prepare=prepare, look_after=after)
        self._rest = DbSession(self._dsn, prepare=prepare, look_after=after)

    async def check_server(self) -> None:
        async with await aconnect(self._dsn) as conn:
            await acheck_server(conn)

    async def register(self, name: str, tasks: Sequence[str] | None) -> int:
        config, host = self._config, socket.gethostname()
        self._worker = await self._claims.run(
            calls.worker_started(
                name, host, os.getpid(), list(config.queues), config.jobs_max, faultline.__version__
            )
        )
        if tasks is not None:
            await self._claims.run(calls.know_tasks(self._worker, tasks))
        return self._worker

    async def know_tasks(self, tasks: Sequence[str] | None) -> None:
        await self._rest.run(calls.know_tasks(self._worker, tasks))

    async def declare_limits(self, tasks: Registry) -> int:
        return await limit_sync.acarry(limit_sync.declare(tasks), self._rest.run)

    async def sync_schedules(
        self, app: str, release: Sequence[int], specs: Sequence[dict[str, Any]]
    ) -> list[SyncedSchedule]:
        return await self._rest.run(calls.sync_schedules(app, release, specs, self._worker))

    async def warm_up(self) -> None:
        """Without it the first plans take longer than recording a thousand jobs.

        An error now comes again when it matters, and is reported then.
        """
        for session, call in (
            (self._successes, calls.complete_many([], [])), (self._rest, calls.fail_many([], [], [])),
        ):  # fmt: skip
            with contextlib.suppress(Exception):
                await session.run(call)

    async def listen(self, heard: Heard, pause: Callable[[], float]) -> None:
        """Wake-ups come over the connection that claims: it stays open while there is nothing to claim."""
        self._claims.tell(heard)
        while True:
            try:
                await self._claims.attend()
                await asyncio.sleep(LOOK_AGAIN_SECONDS)
                self._claims.look()
            except (FaultlineError, psycopg.Error):  # only a hint: the next claim says what is wrong
                await asyncio.sleep(pause())

    async def claim(self, params: ClaimParams, handler: ReplyHandler) -> None:
        await self._claims.fetch(self._claim(params), handler)

    def prepare_claim(self, params: ClaimParams) -> PipelinedCall | None:
        return self._claims.early(self._claim(params))

    async def recover_claim(self, params: ClaimParams) -> list[Row] | None:
        rows = await self._claims.fetch(self._claim(params, resend=True))
        if not rows:
            return None
        beats = await self._claims.run(self._heartbeat(leases_of(rows, params.claim)))
        return still_held(rows, beats)

    def _claim(self, params: ClaimParams, *, resend: bool = False) -> Call[list[ClaimedRow]]:
        config = self._config
        return calls.claim(
            params.queues, params.max_jobs, lease=config.lease_for, claim=params.claim, worker=self._worker,
            timeout=config.timeout, resend=resend, begins=params.begins, trace=params.trace,
            except_tasks=params.except_tasks, freed=params.freed,
        )  # fmt: skip

    async def heartbeat(self, leases: Sequence[Lease]) -> list[HeartbeatResult]:
        return await self._rest.run(self._heartbeat(leases))

    def _heartbeat(self, leases: Sequence[Lease]) -> Call[list[HeartbeatResult]]:
        return calls.heartbeat(leases, self._config.lease_for, self._worker)

    async def settle_many(self, attempts: list[Attempt]) -> list[SettleRefusal]:
        outcomes = [attempt.outcome for attempt in attempts]
        many = MANY[type(outcomes[0])]
        session = self._successes if many is done_many else self._rest
        return await session.run_in_line(many(attempts, outcomes, self._worker))

    async def settle(self, lease: Lease, outcome: Outcome) -> str | None:
        answer: str | None = await self._rest.run(settle(lease, outcome))
        return answer

    async def outcome(self, lease: Lease) -> str:
        return await self._rest.run(calls.outcome(lease))

    async def outcome_in(self, lease: Lease) -> str:
        return await self._rest.run(calls.outcome_in(lease))

    async def note_error(self, lease: Lease, error: str) -> bool:
        return await self._rest.run(calls.note_error(lease, error))

    async def record_refusal(self, lease: Lease) -> tuple[str, int | None]:
        reason, current_token = await self._rest.run(calls.refused(lease, self._worker))
        return reason, current_token

    async def newest_place(self) -> int | None:
        return await self._claims.run(calls.newest_place())

    async def others_serve(self, queue: str) -> bool:
        return await self._rest.run(calls.others_serve(queue, self._worker))

    async def recovery_seconds(self, leases: Sequence[LeaseName]) -> list[float]:
        return await self._rest.run(calls.recoveries(leases))

    async def zombie_seconds(self, leases: Sequence[LeaseName]) -> list[float]:
        return await self._rest.run(calls.zombies(leases))

    async def deregister(self) -> None:
        await self._claims.run(calls.worker_stopped(self._worker))

    def pacemaker(self) -> PacemakerSpec:
        return PacemakerSpec("faultline.worker.heartbeat.pacemaker", {"dsn": self._dsn})

    def transaction_pools(
        self, lease_table: LeaseTable, config: WorkerConfig, loop: AbstractEventLoop
    ) -> TransactionPools:
        return pools_of(self._settings, lease_table, config, loop)

    async def close(self) -> None:
        for session in (self._claims, self._successes, self._rest):
            await session.close()
