"""Faultline in a FastAPI app: its lifespan, a request's transaction, the HTTP API behind its users."""

import asyncio
import contextlib
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx2
import pytest
import sqlalchemy as sa
from fastapi import Depends, FastAPI, HTTPException, Request
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from faultline import Faultline
from faultline.errors import ConfigError, SchemaMissing
from faultline.integrations.fastapi import Caller, Enqueuer, api, enqueuer, lifespan, transaction
from faultline.job import JobState
from faultline.server.auth import mint
from faultline.store import calls
from tests.integrations.carriers import url
from tests.support import enqueue, state_of
from tests.worker.harness import PATIENCE, execute, rows


@pytest.fixture
def app(database):
    with Faultline(database, pooler="none") as app:
        yield app


@pytest.fixture
def greet(app):
    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    return greet


@asynccontextmanager
async def client(web: Any, **how: Any):
    """Asks an app that has been started, as a server would start and stop it."""
    transport = httpx2.ASGITransport(app=web, raise_app_exceptions=False)
    starting = web.router.lifespan_context(web)
    async with (
        starting,
        httpx2.AsyncClient(transport=transport, base_url="http://shop.example", **how) as asks,
    ):
        yield asks


# the lifespan


def test_a_lifespan_runs_a_worker_and_closes_the_app(app, greet):
    web = FastAPI(lifespan=lifespan(app, worker={"concurrency": 2}))

    @web.get("/greet")
    async def ask(name: str) -> str:
        return str(await (await greet.aenqueue(name)).aresult(timeout=PATIENCE))

    async def main():
        async with client(web) as asks:
            said = (await asks.get("/greet?name=Ada", timeout=PATIENCE)).json()
            assert app._stores.in_use
        return said, app._stores.in_use

    assert asyncio.run(main()) == ("hello Ada", False)


def test_a_database_without_a_schema_stops_the_start(empty_database):
    web = FastAPI(lifespan=lifespan(Faultline(empty_database, pooler="none")))

    async def main():
        async with client(web):
            raise AssertionError("it started")

    with pytest.raises(SchemaMissing):
        asyncio.run(main())


# a request's transaction


def shop(app: Faultline, greet: Any, in_request: Any) -> FastAPI:
    web = FastAPI(lifespan=lifespan(app))

    @web.post("/orders/{order}", status_code=201)
    async def place(
        order: int,
        session: Annotated[AsyncSession, in_request],
        enqueue: Annotated[Enqueuer, enqueuer(in_request)],
        fail: bool = False,
    ) -> int:
        await session.execute(sa.text("insert into orders (id) values (:id)"), {"id": order})
        handle = await enqueue(greet, f"order {order}")
        if fail:
            raise HTTPException(409, "sold out")
        return int(handle.id)

    return web


@pytest.fixture
def orders(database):
    """A table whose constraint is looked at by the commit alone."""
    execute(database, "create table orders (id int, unique (id) deferrable initially deferred)")
    return lambda: [id for (id,) in rows(database, "select id from orders order by id")]


def test_rows_and_jobs_of_a_request_commit_together_before_its_answer(database, app, greet, orders, store):
    engine = create_async_engine(url(database, "asyncpg"), poolclass=NullPool)
    web = shop(app, greet, transaction(async_sessionmaker(engine).begin))

    async def main():
        async with client(web) as asks:
            placed = await asks.post("/orders/7")
            seen = orders(), state_of(store, placed.json())
            refused = await asks.post("/orders/8?fail=true")
            broken = await asks.post("/orders/7")
        await engine.dispose()
        return placed.status_code, refused.status_code, broken.status_code, seen

    assert asyncio.run(main()) == (201, 409, 500, ([7], JobState.QUEUED))
    assert orders() == [7]
    assert len(app.jobs()) == 1


def test_a_plain_session_of_a_request_commits_before_its_answer(database, app, greet, orders):
    engine = sa.create_engine(url(database, "psycopg"), poolclass=NullPool)
    web = FastAPI(lifespan=lifespan(app))

    @web.post("/orders/{order}", status_code=201)
    def place(order: int, session: Annotated[Session, transaction(sessionmaker(engine).begin)]) -> int:
        session.execute(sa.text("insert into orders (id) values (:id)"), {"id": order})
        return int(greet.enqueue_in(session, "Ada").id)

    async def main():
        async with client(web) as asks:
            return [(await asks.post("/orders/7")).status_code for _ in range(2)]

    assert asyncio.run(main()) == [201, 500]
    assert (orders(), len(app.jobs())) == ([7], 1)


def test_a_session_that_commits_after_the_answer_is_refused():
    async def session(): ...

    with pytest.raises(ConfigError, match="after the answer"):
        enqueuer(Depends(session))


# the API behind the app's own users


USERS = {"ada": {"read", "operate"}, "eve": {"read"}}


async def staff(request: Request) -> Caller | None:
    name = request.headers.get("authorization", "").removeprefix("Basic ")
    if not name:
        raise HTTPException(401, "log in first")
    return Caller(name, frozenset(USERS[name]), frozenset({"default"})) if name in USERS else None


@pytest.fixture
def web(app):
    web = FastAPI(lifespan=lifespan(app))
    web.mount("/faultline", api(app, authorize=staff))
    return web


def asked(web: Any, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx2.Response]:
    async def main():
        async with client(web) as asks:
            return [await asks.request(method, f"/faultline{path}", **how) for method, path, how in requests]

    return asyncio.run(main())


def by(name: str, **headers: str) -> dict[str, Any]:
    return {"headers": {"authorization": f"Basic {name}", "content-type": "application/json", **headers}}


def test_the_apps_own_users_ask_and_act_within_their_scopes_and_queues(store, web):
    job, mail = enqueue(store), enqueue(store, queue="mail")
    cancel = {"content": b'{"reason": "withdrawn"}'}

    answers = asked(
        web,
        ("GET", f"/api/v1/jobs/{job}", by("eve")),
        ("GET", f"/api/v1/jobs/{mail}", by("eve")),
        ("POST", f"/api/v1/jobs/{job}/cancel", {**by("eve"), **cancel}),
        ("POST", f"/api/v1/jobs/{job}/cancel", {**by("ada"), **cancel}),
        ("GET", "/healthz", by("mallory")),
        ("GET", "/api/v1/jobs", {}),
    )  # fmt: skip

    assert [answer.status_code for answer in answers] == [200, 404, 403, 200, 403, 401]
    assert answers[5].json() == {"detail": "log in first"}
    assert state_of(store, job) == "cancelled"
    (act,) = store.run(calls.acts(job))
    assert act.actor == "ada"


def test_a_page_of_another_origin_is_refused_whoever_asks(store, web):
    job = enqueue(store)

    (answer,) = asked(
        web,
        ("POST", f"/api/v1/jobs/{job}/cancel", {**by("ada", origin="http://evil.example"), "content": b"{}"}),
    )

    assert (answer.status_code, answer.json()["code"]) == (403, "cross_origin")
    assert state_of(store, job) == "queued"


def test_the_key_that_stands_for_a_request_opens_nothing_afterwards(app, store):
    seen = []

    def anyone(request: Request) -> Caller:
        return Caller("anyone", frozenset({"read"}), None)

    mounted: Any = api(app, authorize=anyone)
    admitting = mounted._admissions.admitting

    def noting(request):
        block = admitting(request)

        @contextlib.contextmanager
        def noted():
            with block as (admission, key):
                seen.append(key)
                yield admission, key

        return noted()

    mounted._admissions.admitting = noting
    web = FastAPI(lifespan=lifespan(app))
    web.mount("/faultline", mounted)

    first, guess = asked(web, ("GET", "/api/v1/jobs", {}), ("GET", "/api/v1/jobs", {}))
    assert (first.status_code, guess.status_code) == (200, 200)
    assert len(set(seen)) == 2
    assert mounted._admissions._open == {}


def test_a_caller_who_may_no_more_loses_a_wait_that_lasts(app, store):
    """A long poll goes on only as long as the function lets its caller in."""
    job = enqueue(store)
    allowed = [True]

    def sometimes(request: Request) -> Caller | None:
        return Caller("sometimes", frozenset({"read"}), None) if allowed[0] else None

    web = FastAPI(lifespan=lifespan(app))
    web.mount("/faultline", api(app, authorize=sometimes))

    async def main():
        async with client(web) as asks:
            waiting = asyncio.create_task(
                asks.get(f"/faultline/api/v1/jobs/{job}/wait?seconds=55", timeout=PATIENCE)
            )
            await asyncio.sleep(0.5)
            assert not waiting.done()
            allowed[0] = False
            return (await waiting).status_code

    assert asyncio.run(main()) == 401


@pytest.fixture
def losing(app, monkeypatch):
    """Asks as a user who loses a queue once its request was let in; gives the answer."""
    monkeypatch.setattr("faultline.integrations.fastapi_api.CACHE_SECONDS_MAX", 0.0)
    monkeypatch.setattr("faultline.server.http.routes.event_stream.LOOK_EVERY_SECONDS", 0.05)
    times = []

    def clerk(request: Request) -> Caller:
        times.append(request)
        return Caller("clerk", frozenset({"read"}), None if len(times) <= 2 else frozenset({"other"}))

    web = FastAPI(lifespan=lifespan(app))
    web.mount("/faultline", api(app, authorize=clerk))

    async def reads(path: str) -> httpx2.Response:
        async with asyncio.timeout(PATIENCE), client(web) as asks:
            answer: httpx2.Response = await asks.get(f"/faultline/api/v1{path}")
            return answer

    return lambda path: asyncio.run(reads(path))


def test_a_caller_who_loses_a_queue_loses_its_events(losing):
    """The stream ends by itself: what its client comes back for is chosen by the new rights."""
    assert b"the queues that you may read changed" in losing("/events").content


def test_a_caller_who_loses_a_queue_is_not_told_of_its_job(losing, store):
    answer = losing(f"/jobs/{enqueue(store)}/wait?seconds=0.01")

    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


@pytest.mark.parametrize("answer", [True, "ada", {"name": "ada"}])
def test_an_answer_that_is_no_caller_opens_nothing(app, store, answer):
    web = FastAPI(lifespan=lifespan(app))
    web.mount("/faultline", api(app, authorize=lambda request: answer))

    (refused,) = asked(web, ("GET", "/healthz", {}))

    assert refused.status_code == 500


def test_the_place_that_it_is_mounted_at_is_written_safely_in_the_answer(app, store):
    """It may hold what a client wrote. The job is stored by then, so there has to be an answer."""
    web = FastAPI(lifespan=lifespan(app))
    everything = frozenset({"enqueue"})
    web.mount("/shops/{shop}", api(app, authorize=lambda request: Caller("ada", everything, None)))

    async def main():
        async with client(web) as asks:
            path = "/shops/a%0d%0aset-cookie:%20b%C3%A9/api/v1/jobs"
            return await asks.post(path, json={"task": "greet"})

    answer = asyncio.run(main())
    assert answer.status_code == 201
    assert answer.headers["location"].startswith("/shops/a%0D%0Aset-cookie%3A%20b%C3%A9/api/v1/jobs/")


def test_without_a_function_the_api_wants_a_key(app, store):
    made = mint()
    store.run(calls.create_key(made.id, made.hash, "reader", ["read"], None))
    web = FastAPI(lifespan=lifespan(app))
    web.mount("/faultline", api(app, hosts=["shop.example"]))

    without, with_one = asked(
        web,
        ("GET", "/api/v1/jobs", {}),
        ("GET", "/api/v1/jobs", {"headers": {"authorization": f"Bearer {made.text}"}}),
    )

    assert (without.status_code, with_one.status_code) == (401, 200)


def test_only_named_hosts_where_some_are_named(app, store):
    web = FastAPI(lifespan=lifespan(app))
    web.mount("/faultline", api(app, authorize=staff, hosts=["shop.example"]))

    here, elsewhere = asked(
        web,
        ("GET", "/api/v1/jobs?queue=default", by("ada")),
        ("GET", "/api/v1/jobs?queue=default", by("ada", host="rebound.example")),
    )

    assert (here.status_code, elsewhere.status_code) == (200, 421)


def test_fastapi_is_loaded_by_nothing_else():
    import subprocess
    import sys

    asked = (
        "import sys, faultline.app, faultline.cli.root;"
        "import faultline.runtime.run_worker, faultline.runtime.worker_block;"
        "sys.exit('fastapi' in sys.modules or 'sqlalchemy' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
