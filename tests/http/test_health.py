"""Health: the process is there, it is of use, and it says so without telling more than that."""

import asyncio
import contextlib
import logging

import psycopg
import pytest
from psycopg.errors import DeadlockDetected, LockNotAvailable, QueryCanceled

from faultline.errors import FaultlineError, ServerUnavailable
from faultline.server.auth import Authenticator
from faultline.server.http import create_app
from faultline.server.http.api_context import ApiConfig, ApiContext
from faultline.server.http.problem_document import problem_of
from faultline.store.pool import AsyncStore
from tests.http.serving import code_of, serving


@pytest.fixture
def database(server, template):
    """One of its own for each test: here databases come to harm."""
    from tests.conftest import a_database

    yield from a_database(server, template)


@pytest.fixture
def service(database, monkeypatch):
    monkeypatch.setattr("faultline.server.http.api_context.READY_SECONDS", 0.0)
    monkeypatch.setattr("faultline.server.http.api_context.READY_SECONDS_MAX", 0.5)
    monkeypatch.setattr("faultline.store.pool.async_store.POOL_WAIT_SECONDS", 0.3)
    monkeypatch.setattr("faultline.store.pool.async_pool.POOL_TRY_SECONDS", 0.2)
    with serving(database) as running:
        yield running


def test_health_answers_at_each_of_its_names(service):
    for path in ("/healthz", "/health"):
        answer = service.client().get(path)

        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert service.client().get("/readyz").json() == {"ready": True}


def test_a_server_whose_schema_is_gone_is_there_but_not_ready(service, database):
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("alter schema faultline rename to elsewhere")

    client = service.client()
    answer = client.get("/readyz")

    assert client.get("/healthz").status_code == 200
    assert (answer.status_code, code_of(answer)) == (503, "schema_missing")


def test_a_server_whose_database_is_gone_says_so_and_never_where_it_was(service, server, database, caplog):
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    client = service.client(service.key("admin"))
    assert client.get("/api/v1/jobs").status_code == 200
    server.drop_database(name)

    with caplog.at_level(logging.DEBUG):
        ready = client.get("/readyz")
        asked = client.get("/api/v1/jobs")
        submitted = client.post("/api/v1/jobs", json={"task": "t"})
    server.create_database(name)

    assert client.get("/healthz").status_code == 200
    assert {answer.status_code for answer in (ready, asked, submitted)} == {503}
    for answer in (ready, asked, submitted):
        assert answer.json()["what_to_do"]
        for secret in (name, "postgres", "host=", "SQL", "select", "Traceback", "psycopg"):
            assert secret not in answer.text.replace("PostgreSQL", ""), secret


def test_metrics_need_a_key_that_may_read(service):
    assert service.client().get("/metrics").status_code == 200
    assert b"faultline_" in service.client(service.key("read")).get("/metrics").content
    assert service.client(service.key("enqueue")).get("/metrics").status_code == 403


def test_the_app_can_be_mounted_in_anothers(database):
    """Under a prefix, without its lifespan, with the other's own pages beside it."""
    import httpx2
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    async def ask():
        store = AsyncStore(database)
        ours = create_app(store, Authenticator(store, trust_loopback=True))
        theirs = Starlette(
            routes=[Route("/", lambda request: PlainTextResponse("mine")), Mount("/queue", ours)]
        )
        transport = httpx2.ASGITransport(theirs, client=("127.0.0.1", 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answers = [
                await client.get("/"),
                await client.get("/queue/healthz"),
                await client.get("/queue/api/v1/jobs"),
                await client.post("/queue/api/v1/jobs", json={"task": "t"}),
            ]
        await store.close()
        return answers

    page, health, jobs, submitted = asyncio.run(ask())
    assert page.text == "mine"
    assert health.status_code == 200
    assert jobs.json() == {"jobs": [], "next": None}
    assert (submitted.status_code, code_of(submitted)) == (403, "not_allowed")


def test_an_unforeseen_error_tells_its_number_and_nothing_else(service, monkeypatch, caplog):
    from faultline.server.http.api_context import ApiContext

    async def broken(self, call):
        raise RuntimeError("password=hunter2 in select * from secrets")

    monkeypatch.setattr(ApiContext, "run", broken)

    answer = service.client().get("/api/v1/queues")

    assert (answer.status_code, code_of(answer)) == (500, "unforeseen")
    assert "hunter2" not in answer.text
    assert "secrets" not in answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert answer.json()["request_id"] in caplog.text


def test_every_error_of_ours_has_a_kind_of_problem():
    """A new error without a status is told as unforeseen."""
    from faultline import errors
    from faultline.server.problems import TABLE

    inside = {
        errors.ConfigError, errors.HandlerDied, errors.AlreadySettled, errors.TransactionOpen,
        errors.TransactionEnded, errors.JobEnded, errors.JobDead, errors.JobCancelled,
        errors.WorkersKeepDying, errors.SyncInAsync, errors.EmbeddedError, errors.NoPostgres,
        errors.ServerFailed, errors.NoDatabase, errors.ResultNotKept, errors.FaultlineError,
        errors.NotInTransaction, errors.InSavepoint, errors.TransactionConflict, errors.NotCommitted,
        errors.ResourceFailed, errors.WorkerEnded,
    }  # fmt: skip
    """Raised in workers, at start or in the client: no request meets them."""
    ours = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, FaultlineError)}
    unforeseen = {one for one in ours - inside if not TABLE.keys() & set(one.__mro__)}

    assert unforeseen == set()


@pytest.mark.parametrize("error", [LockNotAvailable(), QueryCanceled(), DeadlockDetected()])
def test_trouble_of_the_moment_is_told_as_such(error):
    """A lock, a statement's timeout: not this server's fault, and gone in a moment."""
    problem = problem_of(error)

    assert (problem.kind.status, problem.kind.code, problem.retry_after) == (503, "database_unavailable", 1)
    assert problem.detail == ""


def test_however_many_ask_whether_it_is_ready_the_database_is_asked_once(monkeypatch):
    """Also while it is not: probes come from everywhere, and need no key."""
    asked = 0

    async def away(conn):
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        raise ServerUnavailable("it is not there")

    class Away(AsyncStore):
        @contextlib.asynccontextmanager
        async def connection(self):
            yield None

    async def probe():
        context = ApiContext(Away(""), Authenticator(Away("")), ApiConfig())
        return await asyncio.gather(*(context.check_ready() for _ in range(50)), return_exceptions=True)

    monkeypatch.setattr("faultline.server.http.api_context.acheck_server", away)
    monkeypatch.setattr("faultline.server.http.api_context.READY_SECONDS", 60.0)
    answers = asyncio.run(probe())

    assert {type(answer) for answer in answers} == {ServerUnavailable}
    assert asked == 1


def test_a_key_of_one_queue_is_not_shown_the_figures_of_all(service, queue):
    answer = service.client(service.key("read", queues=[queue])).get("/metrics")

    assert answer.status_code == 403
    assert code_of(answer) == "queue_needed"
