"""The doors of a worker: all that it asks of the outside goes through them."""

import ast
from asyncio import AbstractEventLoop
from pathlib import Path

import pytest

from faultline.config import Settings, WorkerConfig
from faultline.errors import ConfigError
from faultline.job import Job
from faultline.store import calls
from faultline.task import spec_of
from faultline.worker import worker as module
from faultline.worker.block import Lender
from faultline.worker.board import Board
from faultline.worker.doors import Direct, lender_of
from faultline.worker.worker import Worker
from tests.support import enqueue, outcomes
from tests.worker import children_app as shop
from tests.worker.harness import drain, registry


class NoLoans(Direct):
    """Doors as a server's: everything but a connection for handlers."""

    def lender(self, board: Board, config: WorkerConfig, loop: AbstractEventLoop) -> Lender:
        return lender_of(Settings(), board, config, loop)


async def spend(job: Job) -> None:
    async with job.transaction() as conn:
        await conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])


def spend_in_thread(job: Job) -> None:
    with job.transaction() as conn:
        conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])


@pytest.mark.parametrize("handler", [spend, spend_in_thread])
def test_job_transaction_without_a_database_costs_no_attempt_and_is_told_with_the_remedy(
    database, store, handler, caplog
):
    job = enqueue(store, task=handler.__name__, max_attempts=1)

    drain(database, handler, doors=NoLoans(Settings(dsn=database)))

    assert outcomes(store, job) == ["snoozed"]
    assert store.run(calls.get(job)).attempt == 0
    (told,) = [record.getMessage() for record in caplog.records if "job.transaction()" in record.getMessage()]
    assert handler.__name__ in told
    assert "--dsn" in told


def test_the_worker_itself_opens_no_connection():
    """It has its doors: so a server can stand where the database stood, and nothing else changes."""
    tree = ast.parse(Path(module.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert not imported & {"faultline.store.connect", "faultline.store.line", "faultline.store.run"}


def test_a_child_of_a_worker_without_a_database_knows_none_either(database, store):
    job = enqueue(store, task="touch", max_attempts=1)

    drain(None, *shop.app.registry, doors=NoLoans(Settings(dsn=database)))

    assert outcomes(store, job) == ["snoozed"]
    assert "no DSN" in store.run(calls.history(job))[0].error


def test_a_worker_without_a_database_does_not_start_for_a_task_that_says_it_needs_one(database):
    spec = spec_of(spend, transaction=True)
    doors = NoLoans(Settings(dsn=database))

    with pytest.raises(ConfigError, match=r"task spend: transaction=True.*--dsn"):
        Worker(registry(spec), Settings(), WorkerConfig(), doors=doors)

    Worker(registry(spec), Settings(), WorkerConfig(queues={"other": None}), doors=doors)


def test_a_task_that_seems_to_need_a_database_is_told_at_the_start(database, caplog):
    Worker(registry(spend), Settings(), WorkerConfig(), doors=NoLoans(Settings(dsn=database)))

    (told,) = [record for record in caplog.records if record.name == "faultline.worker"]
    assert "task spend: job.transaction() seems to be used" in told.getMessage()
