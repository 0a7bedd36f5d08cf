"""Looking at jobs and acting on them; and the two forms of everything."""

import asyncio
import inspect
import os
import threading
import time
from datetime import timedelta

import psycopg
import pytest

from faultline import Faultline, Handle, JobNotFound, OutcomeUnknown, OutOfBounds, Task, WrongState
from faultline.errors import BadName, CannotConnect, ConfigError, SchemaMissing, ServerUnavailable
from faultline.store import calls
from tests.support import claim_one


@pytest.mark.parametrize("kind", [Faultline, Task, Handle])
def test_every_method_that_blocks_has_an_async_twin_with_the_same_parameters(kind):
    own = {name: act for name, act in vars(kind).items() if inspect.isfunction(act) and name[0] != "_"}
    twins = {name: act for name, act in own.items() if inspect.iscoroutinefunction(act)}

    for name, twin in twins.items():
        plain = inspect.signature(own[name.removeprefix("a")])
        both = inspect.signature(twin)
        assert [p.replace(annotation=None) for p in plain.parameters.values()] == [
            p.replace(annotation=None) for p in both.parameters.values()
        ]
        assert plain.return_annotation == both.return_annotation
    pure = own.keys() - twins.keys() - {name.removeprefix("a") for name in twins}
    decorators = {"resource", "middleware", "enqueue_middleware", "limit"}
    hooks = {"on_startup", "on_shutdown", "on_failed", "on_dead", "on_lost"}
    blocks = {"worker"}  # async alone: `async with app.worker()`
    assert pure <= {"connect_to", "new", "handle", "using"} | decorators | hooks | blocks


def test_jobs_are_listed_newest_first_and_by_filter(shop, store):
    first, second, third = (shop.charge.enqueue(n).id for n in range(3))
    other = shop.ping.enqueue().id
    store.run(calls.bury(claim_one(store, queues=("billing",)), "no use"))

    assert [job.id for job in shop.app.jobs()] == [other, third, second, first]
    assert [job.id for job in shop.app.jobs(limit=2, before=other)] == [third, second]
    assert [job.id for job in shop.app.jobs(state="dead")] == [first]
    assert [job.id for job in shop.app.jobs(queue="billing", state="queued")] == [third, second]
    assert [job.id for job in shop.app.jobs(task="ping")] == [other]


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 10**6}, {"state": "failed"}])
def test_a_filter_outside_its_bounds_is_refused(shop, wrong):
    with pytest.raises(OutOfBounds):
        shop.app.jobs(**wrong)


def test_a_job_is_cancelled_once_and_for_all(shop):
    job_id = shop.charge.enqueue(7).id

    shop.app.cancel(job_id, "withdrawn")
    shop.app.cancel(job_id)

    job = shop.app.get(job_id)
    assert (job.state, job.error) == ("cancelled", "withdrawn")
    with pytest.raises(WrongState):
        shop.app.replay(job_id)


def test_a_job_for_later_is_made_due(shop, store):
    job_id = shop.charge.using(delay=timedelta(days=1)).enqueue(7).id

    shop.app.retry_now(job_id)

    assert claim_one(store, queues=("billing",)).job_id == job_id


def test_a_dead_job_is_replayed(shop, store):
    job_id = shop.charge.enqueue(7).id
    store.run(calls.bury(claim_one(store, queues=("billing",)), "no use"))

    shop.app.replay(job_id)

    assert shop.app.get(job_id).state == "queued"


def test_async_code_can_do_the_same(shop, store):
    async def main():
        async with shop.app as app:
            job_id = (await shop.charge.using(delay=timedelta(1)).aenqueue(7)).id
            await app.aretry_now(job_id)
            await asyncio.to_thread(lambda: store.run(calls.bury(claim_one(store, queues=("billing",)), "x")))
            await app.areplay(job_id)
            await app.acancel(job_id, "enough")
            await app.awake("billing")
            return (await app.aget(job_id)).state, [job.state for job in await app.ajobs()]

    assert asyncio.run(main()) == ("cancelled", ["cancelled"])


def test_an_unknown_job_is_named(shop):
    for act in (shop.app.get, shop.app.cancel, shop.app.retry_now, shop.app.replay):
        with pytest.raises(JobNotFound, match="4711"):
            act(4711)


def test_a_wrong_queue_is_not_woken(shop):
    with pytest.raises(BadName):
        shop.app.wake("a b")


def test_the_dsn_is_read_when_it_is_needed(monkeypatch, database):
    app = Faultline()
    monkeypatch.setenv("FAULTLINE_DSN", database)

    assert app.jobs() == []
    with pytest.raises(ConfigError, match="already works with a database"):
        app.connect_to("dbname=other")
    app.close()
    app.connect_to(database)
    assert app.jobs() == []
    app.close()


def test_without_a_dsn_nothing_can_be_enqueued(monkeypatch):
    monkeypatch.delenv("FAULTLINE_DSN", raising=False)
    app = Faultline()

    @app.task
    def ping() -> None: ...

    with pytest.raises(ConfigError, match="set FAULTLINE_DSN"):
        ping.enqueue()


def test_a_database_without_our_schema_is_named(empty_database):
    app = Faultline(empty_database)

    with pytest.raises(SchemaMissing, match="faultline migrate"):
        app.jobs()
    app.close()


def test_a_server_that_is_not_there_is_named_without_its_password():
    app = Faultline("postgresql://app:s3cr3t@127.0.0.1:1/shop")

    with pytest.raises(CannotConnect) as said:
        app.jobs()

    assert "s3cr3t" not in str(said.value) + repr(app)


def cut_off(database, when_waiting):
    """Lock the jobs, wait until a session waits for them, cut that one off, and let go."""
    with psycopg.connect(database) as conn:
        conn.execute("lock table faultline.active in access exclusive mode")
        when_waiting.set()
        give_up_at = time.monotonic() + 20
        while time.monotonic() < give_up_at:
            cut = conn.execute(
                "select pg_terminate_backend(pid) from pg_locks join pg_stat_activity using (pid)"
                " where not granted and datname = current_database()"
            ).fetchall()
            if cut:
                break
            time.sleep(0.01)
        conn.rollback()


@pytest.fixture
def with_cut(database, shop):
    shop.app.jobs()  # the connection is there before the trouble starts
    locked = threading.Event()
    cutter = threading.Thread(target=cut_off, args=(database, locked))
    cutter.start()
    assert locked.wait(20)
    yield
    cutter.join(60)


@pytest.mark.usefixtures("with_cut")
def test_an_enqueue_whose_reply_was_lost_is_unknown(shop):
    with pytest.raises(OutcomeUnknown, match="give it a key"):
        shop.charge.enqueue(7)


@pytest.mark.usefixtures("with_cut")
def test_an_enqueue_with_a_key_whose_reply_was_lost_is_repeated(shop):
    handle = shop.charge.using(key="order-7").enqueue(7)

    assert [job.id for job in shop.app.jobs()] == [handle.id]


@pytest.mark.usefixtures("with_cut")
def test_many_jobs_cut_off_before_their_commit_are_known_not_to_be_there(shop):
    with pytest.raises(ServerUnavailable):
        shop.app.enqueue_many([shop.charge.new(7)])

    assert shop.app.jobs() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_uses_connections_of_its_own(shop):
    shop.charge.enqueue(1)

    child = os.fork()
    if child == 0:
        status = 1
        try:
            shop.charge.enqueue(2)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)

    assert status == 0
    shop.charge.enqueue(3)
    assert len(shop.app.jobs()) == 3
