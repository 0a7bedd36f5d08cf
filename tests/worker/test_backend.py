"""The backend of a worker: every call to the outside goes through it."""

import ast
import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from faultline import SyncTransaction, Transaction
from faultline.config import Settings, WorkerConfig
from faultline.errors import ConfigError
from faultline.job import Job
from faultline.lease import Lease
from faultline.store import calls
from faultline.task import spec_of
from faultline.worker import worker as module
from faultline.worker.backend import Backend, ClaimParams, leases_of
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.postgres_backend import PostgresBackend
from faultline.worker.transactions.pools import pools_of
from faultline.worker.transactions.transaction_base import TransactionPools
from faultline.worker.worker import Worker
from tests.support import Carrier, enqueue, outcomes
from tests.worker import children_app as shop
from tests.worker.harness import drain, quick, registry


class NoLoans(PostgresBackend):
    """A backend as a server's: everything but a connection for handlers."""

    def transaction_pools(
        self, lease_table: LeaseTable, config: WorkerConfig, loop: AbstractEventLoop
    ) -> TransactionPools:
        return pools_of(Settings(), lease_table, config, loop)


async def spend(job: Job) -> None:
    async with job.complete() as conn:
        await conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])


def spend_in_thread(job: Job) -> None:
    with job.complete() as conn:
        conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])


@pytest.mark.parametrize("handler", [spend, spend_in_thread])
def test_job_transaction_without_a_database_costs_no_attempt_and_is_told_with_the_remedy(
    database, store, handler, caplog
):
    jobs = [enqueue(store, task=handler.__name__, max_attempts=1) for _ in range(3)]

    drain(database, handler, backend=NoLoans(Settings(dsn=database)))

    for job in jobs:
        assert outcomes(store, job) == ["snoozed"]
        assert store.run(calls.get(job)).attempt == 0
    (told,) = [record.getMessage() for record in caplog.records if "job.complete()" in record.getMessage()]
    assert handler.__name__ in told
    assert "--dsn" in told


async def spend_in_injected(tx: Transaction) -> None: ...
def spend_in_injected_thread(tx: SyncTransaction) -> None: ...


@pytest.mark.parametrize("handler", [spend_in_injected, spend_in_injected_thread])
def test_an_injected_transaction_without_a_database_costs_no_attempt_and_is_told_at_the_start(
    database, store, handler, caplog
):
    job = enqueue(store, task=handler.__name__, max_attempts=1)

    drain(None, handler, backend=NoLoans(Settings(dsn=database)))

    assert outcomes(store, job) == ["snoozed"]
    assert store.run(calls.get(job)).attempt == 0
    assert f"task {handler.__name__}: job.complete() seems to be used" in caplog.text


def test_the_worker_itself_opens_no_connection():
    """The backend makes them: so a server can stand where the database stood, and nothing else changes."""
    tree = ast.parse(Path(module.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert not imported & {
        "faultline.store.driver.connect",
        "faultline.store.session",
        "faultline.store.pool",
    }


def test_only_the_backend_calls_the_database_for_a_worker():
    """Its verbs are what a server answers too. Apart from it: job.complete, and the pacemaker."""
    package = Path(module.__file__).parent
    callers = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "faultline.store import calls" in path.read_text()
    }

    assert callers == {
        "postgres_backend.py",
        "settlement/settle.py",
        "transactions/transaction.py",
        "transactions/transaction_base.py",
        "settlement/settle_in.py",
        "handlers/database_check.py",
        "heartbeat/pacemaker.py",
    }


class Lost:
    """A claim whose reply is lost: nothing keeps the rows."""

    def take(self, rows: list[Any]) -> None:
        pass


async def recovered(backend: Backend, *, was_granted: bool = True) -> list[int] | None:
    """The jobs of a lost claim, or of one that never arrived."""
    claim = ClaimParams(uuid4(), ["default"], 2)
    backend.open(quick())
    try:
        await backend.register("forgetful", None)
        if was_granted:
            await backend.claim(claim, Lost())
        rows = await backend.recover_claim(claim)
    finally:
        await backend.close()
    return None if rows is None else sorted(row[0] for row in rows)


def check_recovery(store: Carrier, backend: Callable[[], Backend], monkeypatch: pytest.MonkeyPatch) -> None:
    """Some jobs are cancelled after the claim is found again, and before its leases are renewed."""
    cancelled: list[int] = []

    def renewed_late(rows: list[Any], claim: UUID) -> list[Lease]:
        for job in cancelled:
            store.run(calls.cancel(job))
        return leases_of(rows, claim)

    monkeypatch.setattr(f"{type(backend()).__module__}.leases_of", renewed_late)
    kept, taken = (enqueue(store, task="work") for _ in range(2))

    cancelled[:] = [taken]
    assert asyncio.run(recovered(backend())) == [kept]
    cancelled[:] = [enqueue(store, task="work")]
    assert asyncio.run(recovered(backend())) == []
    assert asyncio.run(recovered(backend(), was_granted=False)) is None


def test_of_a_claim_whose_reply_was_lost_only_what_is_still_held_is_recovered(database, store, monkeypatch):
    check_recovery(store, lambda: PostgresBackend(Settings(dsn=database)), monkeypatch)


def test_a_child_of_a_worker_without_a_database_knows_none_either(database, store):
    job = enqueue(store, task="touch", max_attempts=1)

    drain(None, *shop.app.registry, backend=NoLoans(Settings(dsn=database)))

    assert outcomes(store, job) == ["snoozed"]
    assert "no DSN" in store.run(calls.history(job))[0].error


def test_a_worker_without_a_database_does_not_start_for_a_task_that_says_it_needs_one(database):
    spec = spec_of(spend, transaction=True)
    backend = NoLoans(Settings(dsn=database))

    with pytest.raises(ConfigError, match=r"task spend: transaction=True.*--dsn"):
        Worker(registry(spec), Settings(), WorkerConfig(), backend=backend)

    Worker(registry(spec), Settings(), WorkerConfig(queues={"other": None}), backend=backend)


def test_a_task_that_seems_to_need_a_database_is_told_at_the_start(database, caplog):
    Worker(registry(spend), Settings(), WorkerConfig(), backend=NoLoans(Settings(dsn=database)))

    (told,) = [record for record in caplog.records if record.name == "faultline.worker"]
    assert "task spend: job.complete() seems to be used" in told.getMessage()
