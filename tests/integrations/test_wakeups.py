"""Workers are woken after the user's commit, where the library tells of it, and not before."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from faultline import Faultline
from tests.integrations.carriers import Django, url


@pytest.fixture
def app(database, store, monkeypatch):
    """An app that notes its wake-ups in place of sending them."""
    app: Any = Faultline(database)
    woken: list[str] = []

    monkeypatch.setattr(app._sender, "hint", woken.append)
    monkeypatch.setattr(app._sender, "hint_soon", woken.append)
    app.woken = woken

    @app.task
    def greet(name: str) -> None: ...

    app.greet = greet
    yield app
    app.close()


def test_a_session_wakes_after_its_commit_and_not_after_a_savepoint(database, app):
    engine = sa.create_engine(url(database, "psycopg"), poolclass=NullPool)
    with Session(engine) as session:
        with session.begin():
            with session.begin_nested():
                app.greet.enqueue_in(session, "Ada")
            assert app.woken == []
        assert app.woken == ["default"]

        with contextlib.suppress(ZeroDivisionError), session.begin():
            app.greet.enqueue_in(session, "Eve")
            raise ZeroDivisionError
        with session.begin():
            session.execute(sa.text("select 1"))
        assert app.woken == ["default"]

        with session.begin():
            app.greet.using(queue="mail").enqueue_in(session, "Bob")
        assert app.woken == ["default", "mail"]


def test_an_async_session_wakes_after_its_commit(database, app):
    async def main():
        engine = create_async_engine(url(database, "asyncpg"), poolclass=NullPool)
        async with AsyncSession(engine) as session:
            async with session.begin():
                await app.greet.aenqueue_in(session, "Ada")
                assert app.woken == []
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await engine.dispose()

    asyncio.run(main())

    assert app.woken == ["default"]


def test_django_wakes_after_its_commit_and_not_after_a_rollback(database, app):
    ways = Django(database)
    with ways.begin() as conn:
        app.greet.enqueue_in(conn, "Ada")
        assert app.woken == []
    assert app.woken == ["default"]

    with contextlib.suppress(ZeroDivisionError), ways.begin() as conn:
        app.greet.enqueue_in(conn, "Eve")
        raise ZeroDivisionError
    ways.close()

    assert app.woken == ["default"]


def test_a_job_for_later_wakes_nobody(database, app):
    engine = sa.create_engine(url(database, "psycopg"), poolclass=NullPool)
    with Session(engine) as session, session.begin():
        app.greet.using(delay=timedelta(minutes=1)).enqueue_in(session, "Ada")

    assert app.woken == []
