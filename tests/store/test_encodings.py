"""Text is text, whatever a database's own encoding is or a shell's PGCLIENTENCODING says."""

import secrets

import psycopg
import pytest

from faultline.store import calls
from faultline.store.migrate import migrate
from faultline.store.pool import Store
from tests.support import new_job

SQL_ASCII = "create database {} encoding 'SQL_ASCII' locale_provider libc locale 'C' template template0"
NAME = '{"name": "任务 Ä"}'


@pytest.fixture
def unencoded(server):
    """A database without an encoding, as `initdb` makes them where there is no locale."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute(SQL_ASCII.format(name))
    yield server.dsn(name)
    server.drop_database(name)


def test_a_database_without_an_encoding_gives_text_all_the_same(unencoded):
    migrate(unencoded)
    store = Store(unencoded)
    try:
        job = store.run(calls.enqueue(new_job(task="greet", args=NAME)))

        assert store.run(calls.get(job)).args == {"name": "任务 Ä"}
        assert [queue.queue for queue in store.run(calls.list_queues())] == ["default"]
    finally:
        store.close()


def test_what_a_shell_says_of_its_encoding_changes_nothing(database, monkeypatch):
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    store = Store(database)
    try:
        job = store.run(calls.enqueue(new_job(task="greet", args=NAME)))

        assert store.run(calls.get(job)).args == {"name": "任务 Ä"}
    finally:
        store.close()
