"""Rule 9, for answers: what is told from rows is as durable as if it were written, also where nothing is.

A row is seen before a standby has it where the wait of its commit was cancelled: its client gave up,
or the server crashed in it. Here the standby is away: an answer that is given is given too early.
"""

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from faultline import Faultline
from faultline.errors import LeaseLost
from faultline.limit import Limit
from faultline.server.auth import mint
from faultline.store import calls
from faultline.store.pool import Store
from tests.promises.no_standby import PATIENCE_SECONDS, a_cluster
from tests.promises.verbs import SETTLING
from tests.support import claim_one, enqueue, new_job

PAGE = Path(__file__).parents[2] / "docs" / "decisions" / "0026-answers-are-durable.md"
LONG = timedelta(hours=1)


@pytest.fixture(scope="module")
def cluster():
    with a_cluster() as running:
        yield running


@pytest.fixture
def store(cluster):
    store = Store(cluster.dsn)
    yield store
    store.close()


def leased(store):
    queue = f"q-{uuid4().hex[:8]}"
    enqueue(store, queue=queue)
    return claim_one(store, queues=(queue,), lease=LONG)


def keyed(store):
    job = new_job(key=uuid4().hex)
    store.run(calls.enqueue(job))
    return calls.enqueue(job)


def keyed_many(store):
    job = new_job(key=uuid4().hex)
    store.run(calls.enqueue_many([job]))
    return calls.enqueue_many([job])


def keyed_each(store):
    enqueue(store)  # a call for several callers makes no lane
    job = new_job(key=uuid4().hex)
    store.run(calls.enqueue_each([job]))
    return calls.enqueue_each([job])


def keyed_and_done(store):
    job = new_job(key=uuid4().hex, queue=f"q-{uuid4().hex[:8]}")
    store.run(calls.enqueue(job))
    store.run(calls.complete(claim_one(store, queues=(job.queue,)), "null"))
    return calls.enqueue(job)


def settled(verb):
    def prepared(store):
        lease = leased(store)
        store.run(SETTLING[verb](lease))
        return calls.outcome(lease)

    return prepared


def settled_in_a_transaction(store):
    lease = leased(store)
    store.run(calls.complete(lease, "null"))
    return calls.outcome_in(lease)


def settled_where_no_row_is_kept(store):
    queue = f"q-{uuid4().hex[:8]}"
    enqueue(store, queue=queue)
    store.run(calls.set_retention(queue, "nothing"))
    lease = claim_one(store, queues=(queue,), lease=LONG)
    store.run(calls.complete(lease, "null"))
    return calls.outcome_in(lease)


def claimed(store):
    lease = leased(store)
    return calls.claim(["default"], 1, lease=LONG, claim=lease.claim, resend=True)


def cancelled(store):
    job = enqueue(store)
    store.run(calls.cancel(job))
    return calls.cancel(job)


def queued(store):
    return calls.retry_now(enqueue(store))


def revoked(store):
    key = mint()
    store.run(calls.create_key(key.id, key.hash, key.id, ["read"], None))
    store.run(calls.revoke_key(key.id))
    return calls.revoke_key(key.id)


def replayed(store):
    lease = leased(store)
    store.run(calls.bury(lease, "no good"))
    queue = store.run(calls.get(lease.job_id)).queue
    assert len(store.run(calls.replay_many(queue=queue))) == 1
    return calls.replay_many(queue=queue)


def ended_as(verb):
    def prepared(store):
        lease = leased(store)
        store.run(SETTLING[verb](lease))
        return calls.get_confirmed(lease.job_id)

    return prepared


def refused_in_a_batch(store):
    lease = leased(store)
    store.run(calls.complete(lease, "null"))
    return calls.complete_many([lease], ["null"])


def failed_in_a_batch(store):
    lease = leased(store)
    store.run(calls.complete(lease, "null"))
    return calls.fail_many([lease], ["boom"], [LONG])


def refused(store):
    lease = leased(store)
    store.run(calls.complete(lease, "null"))
    return calls.refused(lease)


def scheduled(store):
    spec = {"name": "nightly", "task": "work", "every": "1 day"}
    store.run(calls.set_schedule(spec))
    return calls.set_schedule(spec)


def paused(store):
    store.run(scheduled(store))
    store.run(calls.pause_schedule("nightly"))
    return calls.pause_schedule("nightly")


def tied(store):
    store.run(calls.set_limit("api", Limit(total=1)))
    store.run(calls.limit_task("work", "api"))
    return calls.limit_task("work", "api")


ANSWERS = {
    "a schedule that is as asked": scheduled,
    "a pause of a paused schedule": paused,
    "a limit that a task has": tied,
    "a keyed enqueue that finds its key": keyed,
    "a batch that finds its keys": keyed_many,
    "a gathered enqueue that finds its key": keyed_each,
    "a keyed enqueue whose job has ended": keyed_and_done,
    **{f"the outcome of a lease that ended by {verb}": settled(verb) for verb in SETTLING},
    "the outcome of a lease that its handler settled": settled_in_a_transaction,
    "a success of which no row is kept": settled_where_no_row_is_kept,
    "a claim that is asked for again": claimed,
    "a cancel of a cancelled job": cancelled,
    "a retry of a job that is due": queued,
    "a revocation of a revoked key": revoked,
    "a replay of what was replayed": replayed,
    "a result that was waited for": ended_as("complete"),
    "a death that was waited for": ended_as("bury"),
    "a cancel that was waited for": ended_as("cancel_claimed"),
    "a success that is refused because it was recorded": refused_in_a_batch,
    "a failure that is refused because a success was recorded": failed_in_a_batch,
    "a refusal on record": refused,
}


def carry(dsn, call, level):
    with psycopg.connect(dsn, autocommit=True, options=f"-c synchronous_commit={level}") as conn:
        return Store.run_in(conn, call)


@pytest.mark.parametrize("level", ["on", "off"])
@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_from_rows_waits_for_the_standby(cluster, store, what, level):
    call = ANSWERS[what](store)

    with cluster.standby_away():
        answer = cluster.start(carry, cluster.dsn, call, level)
        cluster.check_that_it_waits(answer)

    answer.result(PATIENCE_SECONDS)  # once the standby is there it comes


def test_a_read_waits_for_no_standby(cluster, store):
    """A person who looks is told what stands here: a standby that is away must not blind them."""
    lease = leased(store)
    store.run(calls.complete(lease, "null"))
    job = lease.job_id
    looks = [
        calls.get(job), calls.outline(job), calls.history(job), calls.ended([job]), calls.list_jobs(),
        calls.get_confirmed(enqueue(store)),
    ]  # fmt: skip

    with cluster.standby_away():
        for look in looks:
            assert cluster.start(carry, cluster.dsn, look, "on").result(PATIENCE_SECONDS)


def test_where_nothing_can_be_written_a_result_is_told_as_it_stands(cluster, store):
    lease = leased(store)
    store.run(calls.complete(lease, "null"))

    with cluster.standby_away(), psycopg.connect(cluster.dsn) as conn:
        conn.read_only = True
        assert Store.run_in(conn, calls.get_confirmed(lease.job_id)).state == "succeeded"
        written = conn.execute("select pg_current_xact_id_if_assigned()").fetchone()
        conn.rollback()

    assert written == (None,)


def test_without_synchronous_standbys_an_answer_writes_nothing(cluster, store):
    call = settled("complete")(store)
    with psycopg.connect(cluster.dsn) as conn:
        assert Store.run_in(conn, call) == "succeeded"
        written = conn.execute("select pg_current_xact_id_if_assigned()").fetchone()

    assert written == (None,)


def test_the_schemas_owner_need_be_no_superuser(cluster, store):
    """Every verb runs with its owner's rights, and that one may be an ordinary role."""
    with psycopg.connect(cluster.dsn, autocommit=True) as conn:
        conn.execute("create role plain_owner createrole")
        granted = conn.execute(
            "select has_function_privilege('plain_owner', oid, 'execute') from pg_proc"
            " where proname = 'pg_logical_emit_message' and pronamespace = 'pg_catalog'::regnamespace"
        ).fetchall()
        conn.execute("set role plain_owner")
        conn.execute("select pg_logical_emit_message(true, 'faultline', ''::text)")
        conn.execute("reset role")
        conn.execute("drop role plain_owner")

    assert set(granted) == {(True,)}


def test_a_client_that_gave_up_is_not_told_of_a_job_that_a_failover_would_lose(cluster, store):
    app = Faultline(dsn=cluster.dsn)

    @app.task
    async def charge(order: int) -> None: ...

    async def asked() -> int:
        try:
            return (await charge.using(key="order-7").aenqueue(order=7)).id
        finally:
            await app.aclose()

    async def given_up() -> None:
        trying = asyncio.create_task(asked())
        while not await asyncio.to_thread(cluster.waiting):
            assert not trying.done()
        trying.cancel()
        await asyncio.wait([trying])

    store.run(calls.wake("default"))
    with cluster.standby_away():
        asyncio.run(given_up())
        cluster.cancel_waits()
        again = cluster.start(lambda: asyncio.run(asked()))
        cluster.check_that_it_waits(again)

    assert again.result(PATIENCE_SECONDS) > 0


@pytest.mark.parametrize("form", ["result", "aresult"])
def test_a_result_is_given_once_a_standby_has_it(cluster, store, form):
    app = Faultline(dsn=cluster.dsn)

    @app.task
    async def charge(order: int) -> str: ...

    lease = leased(store)
    store.run(calls.complete(lease, '"paid"'))
    handle = charge.handle(lease.job_id)

    async def aresult() -> str:
        try:
            return await handle.aresult()
        finally:
            await app.aclose()

    with cluster.standby_away():
        answer = cluster.start(handle.result if form == "result" else lambda: asyncio.run(aresult()))
        cluster.check_that_it_waits(answer)
        assert store.run(calls.get(lease.job_id)).result == "paid"  # as it stands here

    assert answer.result(PATIENCE_SECONDS) == "paid"
    app.close()


def test_a_lease_that_is_lost_is_no_acknowledgement(store):
    """A call that raises rolls back, so it cannot wait: its caller asks for the outcome."""
    lease = leased(store)
    store.run(calls.complete(lease, "null"))

    with pytest.raises(LeaseLost, match="settled"):
        store.run(calls.complete(lease, "null"))


def test_the_page_decides_for_every_verb(cluster):
    """A new verb has to be judged before it is granted to a role."""
    with psycopg.connect(cluster.dsn) as conn:
        granted = {
            name
            for (name,) in conn.execute(
                "select distinct object from faultline.role_grants() where kind = 'function'"
            )
        }
    judged = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)))

    assert sorted(judged) == sorted(granted)
