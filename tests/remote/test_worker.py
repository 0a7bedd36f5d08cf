"""The ordinary worker over a server: the same handlers, the same outcomes, and no database it knows of."""

import asyncio
import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from faultline import Faultline
from faultline.config import Settings
from faultline.errors import CannotConnect, NotAllowed, NotAuthenticated
from faultline.job import Job
from faultline.lab.drills.processes.server_process import make_key
from faultline.outcome import Cancel, Dead, Snooze
from faultline.remote.remote_backend import RemoteBackend
from faultline.remote.server_address import ServerAddress
from faultline.server.auth import mint
from faultline.store import calls
from faultline.store.driver.connect import connect
from faultline.store.pool import Store
from faultline.task import spec_of
from faultline.telemetry import listen
from faultline.worker.claiming import floor_looks, known_tasks
from tests.remote.harness import drain, working
from tests.support import TAKE_OVER, enqueue, new_job, outcomes, state_of
from tests.worker import children_app as shop
from tests.worker import harness, suspects_app
from tests.worker.harness import attempt_of, eventually, quick, rows, short
from tests.worker.test_backend import check_recovery
from tests.worker.test_suspects import suspect

UNKNOWN = "no task of this name is known to this worker; left for one that knows it: "


async def echo(said: str) -> str:
    return said


def echo_in_thread(said: str) -> str:
    return said


def steal(store: Store, job: int) -> None:
    """What another worker's claim leaves behind, had the lease run out."""
    with store.connection() as conn:
        conn.execute(TAKE_OVER, [job])


def test_jobs_run_and_their_results_are_kept(store, served):
    jobs = [
        enqueue(store, task=task, args=f'{{"said": "{said}"}}')
        for task, said in (("echo", "é☃"), ("echo_in_thread", "b"))
    ]

    assert drain(served, echo, echo_in_thread) == 0

    assert [store.run(calls.get(job)).result for job in jobs] == ["é☃", "b"]
    assert [outcomes(store, job) for job in jobs] == [["succeeded"], ["succeeded"]]


def test_what_a_handler_sees_of_its_job_is_what_it_sees_on_the_database(database, store, served):
    seen: list[Any] = []

    async def look(job: Job) -> None:
        seen.append(
            (job.task, job.queue, job.attempt, job.max_attempts, job.crashes, job.key, job.created_at)
        )

    for _ in range(2):
        store.run(calls.enqueue(new_job("look", key="once", max_attempts=7, key_for=timedelta(0))))
        (drain(served, look) if not seen else harness.drain(database, look))

    over_server, direct = seen
    assert over_server[:-1] == direct[:-1] == ("look", "default", 1, 7, 0, "once")
    assert over_server[-1] < direct[-1]
    assert abs((direct[-1] - over_server[-1]).total_seconds()) < 60


def test_every_outcome_is_recorded_as_on_the_database(store, served):
    async def end(how: str) -> None:
        match how:
            case "snooze":
                raise Snooze(timedelta(hours=1), "later")
            case "cancel":
                raise Cancel("not wanted")
            case "dead":
                raise Dead("hopeless")
            case "fail":
                raise ValueError("broken")

    jobs = {
        how: enqueue(store, task="end", args=f'{{"how": "{how}"}}')
        for how in ("snooze", "cancel", "dead", "fail")
    }

    drain(served, end)

    assert {how: outcomes(store, job) for how, job in jobs.items()} == {
        "snooze": ["snoozed"], "cancel": ["cancelled"], "dead": ["dead"], "fail": ["failed"],
    }  # fmt: skip
    assert "broken" in store.run(calls.history(jobs["fail"]))[0].error


def test_a_handler_in_a_child_process_works_too(store, served):
    job = enqueue(store, task="pid")

    drain(served, *shop.app.registry)

    assert outcomes(store, job) == ["succeeded"]
    assert store.run(calls.get(job)).result != 0


async def spend(job: Job) -> None:
    async with job.complete(result="spent") as conn:
        await conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])


def test_job_transaction_needs_a_dsn_and_has_one_if_it_is_given(database, store, served):
    without = enqueue(store, task="spend", max_attempts=1)
    drain(served, spend)
    beside = enqueue(store, task="spend", max_attempts=1)
    drain(served, spend, dsn=database)

    assert outcomes(store, without) == ["snoozed"]
    assert store.run(calls.get(without)).attempt == 0
    assert outcomes(store, beside) == ["succeeded"]
    assert rows(database, "select job_id from effects") == [(beside,)]


def test_a_wake_up_starts_a_job_long_before_the_poll(store, served):
    started = threading.Event()

    async def start() -> None:
        started.set()

    with working(served, start, config=quick(idle_poll_every=timedelta(minutes=10))) as worker:
        eventually(lambda: worker.worker._state.listening)
        time.sleep(0.5)  # its pause has grown by now
        store.run(calls.enqueue(new_job("start")), calls.wake("default"))
        assert started.wait(30)


def test_a_stopping_worker_gives_back_what_it_has_not_started(store, served):
    async def wait() -> None:
        await asyncio.sleep(3600)

    jobs = [enqueue(store, task="wait") for _ in range(6)]
    config = quick(jobs_max=2, grace=timedelta(0))
    with working(served, wait, config=config) as worker:
        eventually(lambda: [state_of(store, job) for job in jobs].count("running") >= 2)

    assert {state_of(store, job) for job in jobs} == {"queued"}
    assert all(store.run(calls.get(job)).attempt == 0 for job in jobs)
    known = {one.id: one for one in store.run(calls.list_workers(gone=True))}
    assert known[worker.worker.id].stopped_at is not None


def test_a_lease_is_renewed_by_the_pacemaker_over_the_server(store, served):
    async def nap() -> None:
        await asyncio.sleep(short().lease_for.total_seconds() * 3)

    job = enqueue(store, task="nap", max_attempts=1)

    drain(served, nap, config=short())

    assert set(outcomes(store, job)) <= {"released", "succeeded"}
    assert outcomes(store, job)[-1] == "succeeded"


def test_a_cancelled_job_stops_its_handler(store, served):
    stopped = threading.Event()

    async def nap() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    job = enqueue(store, task="nap")
    with working(served, nap, config=short(lease_for=timedelta(seconds=6))):
        eventually(lambda: state_of(store, job) == "running")
        store.run(calls.cancel(job))
        assert stopped.wait(30)

    assert outcomes(store, job) == ["cancelled"]


def test_a_cancelled_jobs_handler_is_stopped_long_before_the_next_beat(database, store, served):
    """The server is told by the database, and tells the worker."""
    stopped = threading.Event()

    async def nap() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    job = enqueue(store, task="nap")
    app = Faultline(database)
    with working(served, nap, config=quick(lease_for=timedelta(minutes=30))) as worker:
        eventually(lambda: worker.worker._state.listening and list(worker.worker._state.running))
        app.cancel(job)
        assert stopped.wait(harness.PATIENCE)
    app.close()

    assert outcomes(store, job) == ["cancelled"]


def test_a_job_that_another_took_is_stopped(store, served):
    """The pacemaker hears `lost` from the server."""
    stopped = threading.Event()

    async def nap() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            stopped.set()
            raise

    job = enqueue(store, task="nap")
    with working(served, nap, config=short(lease_for=timedelta(seconds=6))) as worker:
        eventually(lambda: list(worker.worker._state.running))
        steal(store, job)
        assert stopped.wait(harness.PATIENCE)
        assert state_of(store, job) == "running"

    assert outcomes(store, job) == ["expired"]


def test_a_result_that_comes_late_is_refused_and_recorded_once(store, served, caplog):
    began, go = threading.Event(), threading.Event()

    def hold() -> str:
        began.set()
        assert go.wait(30)
        return "late"

    job = enqueue(store, task="hold")
    with working(served, hold, config=quick()) as worker:
        assert began.wait(30)
        token = attempt_of(worker, job).token
        steal(store, job)
        go.set()
        refusals = eventually(lambda: store.run(calls.refusals(job)))

    assert [(refusal.token, refusal.reason, refusal.times) for refusal in refusals] == [
        (token, "token_mismatch", 1)
    ]
    assert state_of(store, job) == "running"
    blocked = [one.facts for one in caplog.records if getattr(one, "event", "") == "stale_write_blocked"]
    assert [(facts["stale_token"], facts["current_token"]) for facts in blocked] == [(token, token + 1)]


def test_a_single_settling_that_is_refused_is_recorded_once(store, served, caplog):
    began, go = threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        assert go.wait(30)
        raise Snooze(timedelta(hours=1), "late")

    job = enqueue(store, task="hold")
    with working(served, hold, config=quick()):
        assert began.wait(30)
        steal(store, job)
        go.set()
        refusals = eventually(lambda: store.run(calls.refusals(job)))

    assert [(refusal.reason, refusal.times) for refusal in refusals] == [("token_mismatch", 1)]
    blocked = [one for one in caplog.records if getattr(one, "event", "") == "stale_write_blocked"]
    assert [event.facts["reason"] for event in blocked] == ["token_mismatch"]


def test_a_task_that_it_does_not_know_is_not_given_to_a_worker(store, served):
    job = enqueue(store, task="nobody_knows_it")

    drain(served, echo)

    assert outcomes(store, job) == []
    assert store.run(calls.list_workers(gone=True, most=1))[0].tasks == ["echo"]


def test_a_task_of_a_module_that_is_imported_later_is_given(store, served, monkeypatch):
    monkeypatch.setattr(known_tasks, "LOOK_SECONDS", 0.01)

    async def later() -> None: ...

    job = enqueue(store, task="later")
    with working(served, echo) as app:
        app.worker.tasks.add(spec_of(later))
        eventually(lambda: state_of(store, job) == "succeeded")

    assert outcomes(store, job) == ["succeeded"]


def test_a_worker_over_a_server_passes_another_apps_jobs(store, served, monkeypatch):
    monkeypatch.setattr(floor_looks, "SLOW_SECONDS", -1.0)
    store.run(calls.enqueue_many([new_job(task="theirs")] * 50))

    with working(served, echo) as app:

        def passed() -> bool:
            enqueue(store, task="echo", args='{"said": "a"}')
            return (app.worker._claimer._cursors[""].floor_looks.start or 0) > 51

        eventually(passed)
        job = enqueue(store, task="echo", args='{"said": "b"}')
        eventually(lambda: state_of(store, job) == "succeeded")


def test_a_worker_that_names_no_tasks_leaves_an_unknown_one_to_others(store, served, monkeypatch):
    monkeypatch.setattr(known_tasks, "TASKS_MAX", 0)
    job = enqueue(store, task="nobody_knows_it")

    drain(served, echo)

    assert [(entry.outcome, entry.error) for entry in store.run(calls.history(job))] == [
        ("snoozed", UNKNOWN + "nobody_knows_it")
    ]
    assert store.run(calls.get(job)).attempt == 0


def test_no_word_of_a_handler_says_that_a_task_is_unknown(store, served):
    def unsure() -> None:
        raise Snooze(timedelta(hours=1), "unknown_task")

    job = enqueue(store, task="unsure")
    drain(served, unsure)

    assert [(entry.outcome, entry.error) for entry in store.run(calls.history(job))] == [
        ("snoozed", "unknown_task")
    ]
    with store.connection() as conn:
        assert conn.execute("select unknown_since from faultline.later").fetchall() == [(None,)]


def test_a_task_that_no_worker_knew_for_a_day_is_dead(store, served, caplog, monkeypatch):
    monkeypatch.setattr(known_tasks, "TASKS_MAX", 0)
    job = enqueue(store, task="nobody_knows_it")
    drain(served, echo)
    with store.connection() as conn:
        conn.execute("update faultline.later set run_at = now(), unknown_since = now() - interval '25 hours'")
    store.run(calls.promote())

    drain(served, echo)

    assert outcomes(store, job) == ["snoozed", "dead"]
    assert store.run(calls.get(job)).error == "no worker knew the task nobody_knows_it for a day"
    assert any(record.getMessage().startswith(f"job {job} is dead") for record in caplog.records)


@pytest.mark.parametrize(
    ("key", "error"), [(None, (NotAllowed, NotAuthenticated)), ("flk_wrong", NotAuthenticated)]
)
def test_without_a_good_key_no_worker_starts(served, key, error):
    backend = RemoteBackend(ServerAddress.read(served.url, key), Settings())

    with pytest.raises(error):
        harness.drain(None, echo, backend=backend)


def test_a_worker_is_told_how_to_show_a_key_and_which_queues_its_key_is_not_for(served):
    with pytest.raises((NotAllowed, NotAuthenticated)) as wrong:
        harness.drain(
            None, echo, backend=RemoteBackend(ServerAddress.read(served.url, "flk_wrong"), Settings())
        )
    assert "A worker shows the key that FAULTLINE_API_KEY or --key-file gives it" in str(wrong.value)

    key = mint()
    with connect(served.dsn) as conn:
        Store.run_in(conn, calls.create_key(key.id, key.hash, "mailer", ("work",), ("mail",)))
    backend = RemoteBackend(ServerAddress.read(served.url, key.text), Settings())
    with pytest.raises(NotAllowed, match="mailer may not work on default; name only queues that the key is"):
        harness.drain(None, echo, backend=backend)


def test_a_worker_whose_key_is_revoked_ends_and_its_last_event_says_that_it_failed(store, served):
    with connect(served.dsn) as conn:
        key = make_key(conn)
    told: list[Any] = []
    stop = listen(lambda name, facts: told.append(facts["code"]) if name == "worker_exit" else None)
    backend = RemoteBackend(ServerAddress.read(served.url, key), Settings())

    worker = harness.InProcess(None, harness.registry(echo), quick(), backend=backend).start()
    store.run(calls.revoke_key(key.split("_")[1]))

    with pytest.raises(NotAuthenticated):
        worker.join()
    stop()
    assert told == [1]


def test_where_no_server_listens_the_worker_says_so_and_ends():
    backend = RemoteBackend(ServerAddress.read("grpc://127.0.0.1:1", "flk_any"), Settings())

    with pytest.raises(CannotConnect, match=r"127\.0\.0\.1:1"):
        harness.drain(None, echo, backend=backend)


def test_suspects_run_alone_over_a_server_too(database, store, served):
    job = enqueue(store, task="pid")
    with store.connection() as conn:
        conn.execute("update faultline.active set crashes = 1 where id = %s", [job])

    drain(served, *shop.app.registry)

    assert outcomes(store, job) == ["succeeded"]


def test_a_death_by_crashes_is_told_as_one_over_a_server_too(database, store, served, caplog, monkeypatch):
    """The log said `queued`: an answer to a settling does not tell that the job died of it."""
    monkeypatch.setenv("FAULTLINE_DSN", database)  # for the handler's own note
    job = suspect(database, store, "poison_once", crashes=2, how="exit")

    drain(served, *suspects_app.app.registry)

    assert outcomes(store, job) == ["dead"]
    (told,) = [record for record in caplog.records if record.msg == "execution_finished"]
    assert (told.levelname, told.facts["outcome"], told.facts["state"]) == ("ERROR", "Crashed", "dead")


def test_large_results_go_in_as_many_messages_as_they_need(store, served):
    async def big(bytes_: int) -> str:
        return "x" * bytes_

    jobs = [enqueue(store, task="big", args='{"bytes_": 900000}') for _ in range(12)]

    drain(served, big, config=quick(jobs_max=12))

    assert {state_of(store, job) for job in jobs} == {"succeeded"}


def test_large_args_come_in_as_many_messages_as_they_need(store, served):
    sizes: list[int] = []

    async def weigh(text: str) -> None:
        sizes.append(len(text))

    for _ in range(12):
        enqueue(store, task="weigh", args=f'{{"text": "{"y" * 900_000}"}}')

    drain(served, weigh, config=quick(jobs_max=12))

    assert sizes == [900_000] * 12


def test_a_result_that_the_database_refuses_fails_its_own_job_only(store, served):

    async def say(bad: bool) -> str:
        return "\x00" if bad else "fine"

    good = [enqueue(store, task="say", args='{"bad": false}') for _ in range(3)]
    bad = enqueue(store, task="say", args='{"bad": true}', max_attempts=1)

    drain(served, say)

    assert {state_of(store, job) for job in good} == {"succeeded"}
    assert state_of(store, bad) == "dead"


def test_a_job_with_its_own_lease_and_timeout_keeps_them(store, served):
    async def wait() -> None:
        await asyncio.sleep(3600)

    own: dict[str, Any] = {"lease_for": timedelta(seconds=7), "timeout": timedelta(seconds=90)}
    store.run(calls.enqueue(new_job("wait", **own)))
    with working(served, wait, config=quick(grace=timedelta(0))) as worker:
        (attempt,) = eventually(lambda: list(worker.worker._state.running))

    assert (attempt.lease_for, round(attempt.timeout_at - attempt.taken_at, 1)) == (7.0, 89.8)


def test_of_a_claim_whose_answer_was_lost_only_what_is_still_held_is_recovered(store, served, monkeypatch):
    check_recovery(store, served.backend, monkeypatch)


def test_a_job_completed_over_a_connection_of_the_handlers_own_is_not_settled_again(database, store, served):
    def own(job: Job, then: str) -> None:
        with connect(database) as conn, conn.transaction():
            conn.execute("create table if not exists own (job_id bigint)")
            conn.execute("insert into own values (%s)", [job.id])
            job.complete_in(conn, result="own")
            if then == "roll back":
                raise ValueError("on purpose")

    kept = enqueue(store, task="own", args='{"then": "commit"}')
    undone = enqueue(store, task="own", args='{"then": "roll back"}', max_attempts=1)

    drain(served, own)

    assert (outcomes(store, kept), store.run(calls.get(kept)).result) == (["succeeded"], "own")
    assert outcomes(store, undone) == ["dead"]
    assert rows(database, "select job_id from own") == [(kept,)]
    assert store.run(calls.refusals(kept)) == []
