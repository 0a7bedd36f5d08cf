"""A handler that asks for a transaction: its rows and the job's success commit together, or not at all."""

import asyncio
import logging
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from faultline import Job, SyncTransaction, Transaction
from faultline.errors import ConfigError
from faultline.outcome import Cancel, Dead, Snooze
from faultline.retry import Constant
from faultline.store import calls
from faultline.task import TaskSpec, spec_of
from faultline.worker.claiming.unserved_tasks import check_needs
from tests.support import TAKE_OVER, enqueue, outcomes, state_of
from tests.worker.harness import drain, eventually, execute, registry, rows, short, working

INSERT = "insert into effects (job_id, token, said) values (0, 0, %s)"
LATER = Constant(timedelta(hours=1))
TOGETHER = (
    "select count(distinct xmin::text) from"
    " (select xmin from effects union all select xmin from faultline.ledger) as written"
)


def effects(dsn: str) -> list[str]:
    return [said for (said,) in rows(dsn, "select said from effects order by at")]


@pytest.fixture(params=["async", "thread"])
def task(request: pytest.FixtureRequest) -> Any:
    """Makes a task, async or plain, whose handler writes a row and then does something."""

    def make(then=lambda tx: None, name="charge") -> TaskSpec:
        async def charge(tx: Transaction, order_id: int = 7) -> Any:
            await tx.execute(INSERT, [f"order {order_id}"])
            return await asyncio.to_thread(then, tx)

        def charge_plain(tx: SyncTransaction, order_id: int = 7) -> Any:
            tx.execute(INSERT, [f"order {order_id}"])
            return then(tx)

        return spec_of(charge if request.param == "async" else charge_plain, name=name, retry=LATER)

    return make


def throw(error: BaseException) -> Any:
    raise error


def test_rows_success_and_result_commit_together(database, store, task):
    job = enqueue(store, task="charge", args='{"order_id": 3}')

    drain(database, task(lambda tx: {"paid": True}))

    assert effects(database) == ["order 3"]
    assert rows(database, TOGETHER) == [(1,)]
    assert store.run(calls.get(job)).result == {"paid": True}
    assert outcomes(store, job) == ["succeeded"]


def test_an_exception_rolls_everything_back_and_fails_the_job(database, store, task):
    job = enqueue(store, task="charge")

    drain(database, task(lambda tx: throw(ValueError("no such order"))))

    assert effects(database) == []
    assert outcomes(store, job) == ["failed"]
    assert "no such order" in (store.run(calls.get(job)).error or "")


@pytest.mark.parametrize(
    ("word", "ending"),
    [(Snooze(timedelta(hours=1)), "snoozed"), (Cancel("off"), "cancelled"), (Dead("no"), "dead")],
)
@pytest.mark.parametrize("how", ["returned", "raised"])
def test_another_outcome_rolls_everything_back_and_is_recorded(database, store, task, word, ending, how):
    job = enqueue(store, task="charge")

    drain(database, task(lambda tx: word if how == "returned" else throw(word)))

    assert effects(database) == []
    assert outcomes(store, job) == [ending]


def test_a_lost_lease_rolls_everything_back_and_is_refused(database, store, task):
    job = enqueue(store, task="charge")

    drain(database, task(lambda tx: execute(database, TAKE_OVER, job)))

    assert effects(database) == []
    assert state_of(store, job) == "running"
    (refusal,) = store.run(calls.refusals(job))
    assert (refusal.reason, refusal.token, refusal.current_token) == ("token_mismatch", 1, 2)


def test_a_result_that_is_no_document_rolls_everything_back(database, store, task):
    job = enqueue(store, task="charge")

    drain(database, task(lambda tx: object()))

    assert effects(database) == []
    assert outcomes(store, job) == ["failed"]


def test_a_result_that_was_set_is_committed(database, store, task):
    job = enqueue(store, task="charge")

    def charge(tx: Any) -> None:
        tx.result = "set"

    drain(database, task(charge))

    assert store.run(calls.get(job)).result == "set"


def test_a_result_that_was_set_and_another_that_was_returned_are_refused_by_name(database, store, task):
    job = enqueue(store, task="charge")

    def charge(tx: Any) -> str:
        tx.result = "set"
        return "returned"

    drain(database, task(charge))

    assert effects(database) == []
    assert outcomes(store, job) == ["failed"]
    assert "AlreadySettled" in (store.run(calls.get(job)).error or "")


@pytest.mark.parametrize("plain", [False, True])
def test_a_database_error_that_the_handler_swallowed_is_no_success(database, store, plain):
    async def charge(tx: Transaction) -> str:
        await tx.execute(INSERT, ["first"])
        try:
            await tx.execute("select 1 / 0")
        except psycopg.Error:
            return "all is well"
        return "never"

    def charge_plain(tx: SyncTransaction) -> str:
        tx.execute(INSERT, ["first"])
        try:
            tx.execute("select 1 / 0")
        except psycopg.Error:
            return "all is well"
        return "never"

    job = enqueue(store, task="charge")

    drain(database, spec_of(charge_plain if plain else charge, name="charge", retry=LATER))

    assert effects(database) == []
    assert outcomes(store, job) == ["failed"]


def test_a_handler_that_commits_by_itself_is_told_so(database, store, caplog):
    async def charge(tx: Transaction) -> None:
        await tx.execute("commit")

    job = enqueue(store, task="charge")

    drain(database, spec_of(charge, retry=LATER))

    assert outcomes(store, job) == ["failed"]
    assert "TransactionEnded" in (store.run(calls.get(job)).error or "")


def test_a_block_inside_an_injected_transaction_is_refused(database, store):
    async def charge(job: Job, tx: Transaction) -> None:
        async with job.complete():
            pass

    job = enqueue(store, task="charge")

    drain(database, spec_of(charge, retry=LATER))

    assert outcomes(store, job) == ["failed"]
    assert "TransactionOpen" in (store.run(calls.get(job)).error or "")


def test_the_job_comes_before_the_transaction(database, store):
    async def charge(job: Job, tx: Transaction, order_id: int, *, note: str = "") -> list[Any]:
        return [job.id, type(tx).__name__, order_id, note]

    job = enqueue(store, task="charge", args='{"order_id": 7, "note": "x"}')

    drain(database, spec_of(charge))

    assert store.run(calls.get(job)).result == [job, "Transaction", 7, "x"]


def test_a_stopped_handler_commits_nothing(database, store):
    async def charge(tx: Transaction) -> None:
        await tx.execute(INSERT, ["half"])
        await asyncio.sleep(60)

    job = enqueue(store, task="charge")

    with working(database, spec_of(charge, timeout=timedelta(seconds=2), retry=LATER), config=short()):
        eventually(lambda: outcomes(store, job))

    assert effects(database) == []
    assert outcomes(store, job) == ["failed"]


def test_without_a_dsn_the_job_is_left_to_others_by_name(caplog):
    async def charge(tx: Transaction) -> None: ...

    caplog.set_level(logging.WARNING)
    check_needs(registry(charge), ["default"])

    assert "charge" in caplog.text
    assert "no DSN" in caplog.text


def test_an_unregistered_type_keeps_the_worker_from_starting(database):
    class Session:
        def commit(self) -> None: ...
        def rollback(self) -> None: ...
        def execute(self) -> None: ...

    def charge(session: Session) -> None: ...

    charge.__annotations__ = {"session": Session}
    with pytest.raises(ConfigError, match=r"charge asks for a .*Session, and no maker of it is registered"):
        drain(database, spec_of(charge))
