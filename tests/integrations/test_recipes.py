"""The recipes of the guides, with the real libraries: Alembic, Sentry, Flask, Pydantic."""

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import alembic.command
import pytest
import sentry_sdk
from alembic.config import Config
from click.testing import CliRunner
from pydantic import BaseModel
from sentry_sdk.transport import Transport

from faultline import Dead, Faultline, Job, JobEvent, Snooze
from faultline.cli.root import root
from faultline.errors import JobDead
from faultline.retry import Constant
from faultline.store import migrate
from faultline.store.sql_files import LATEST
from scripts.docs.blocks import blocks, documents
from tests.integrations.carriers import url
from tests.store.test_migrate import made_by
from tests.worker.harness import rows

GUIDE = "docs/guides/flask-and-scripts.md"


def recipe(word: str) -> str:
    """The block of the guide that has this word in it."""
    (file,) = (file for file in documents() if str(file).endswith(GUIDE))
    (text,) = (block.text for block in blocks(file) if block.language == "python" and word in block.text)
    return text


# Alembic

ENV = """
from alembic import context
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

with create_engine(context.config.get_main_option("url"), poolclass=NullPool).connect() as conn:
    context.configure(connection=conn, transaction_per_migration=False)
    with context.begin_transaction():
        context.run_migrations()
"""

OTHER = """
from alembic import op

revision = "orders"
down_revision = "faultline_01"

def upgrade():
    op.execute("create table orders (id int)")
"""


class Migrations:
    """A folder of revisions, and what `alembic upgrade` does with them."""

    def __init__(self, folder: Path, dsn: str, driver: str) -> None:
        self.versions = folder / "versions"
        self.versions.mkdir()
        (folder / "env.py").write_text(ENV)
        self._config = Config()
        self._config.set_main_option("script_location", str(folder))
        self._config.set_main_option("url", url(dsn, driver).render_as_string(False).replace("%", "%%"))

    def add(self, revision: str, before: str | None, *options: str) -> None:
        """The guide's revision, with the script that the command prints."""
        printed = CliRunner().invoke(root, ["migrate", "--sql", *options])
        assert printed.exit_code == 0, printed.output
        (self.versions / f"{revision}.sql").write_text(printed.stdout)
        text = recipe("from alembic import op").replace('"faultline_01"', f'"{revision}"')
        text = text.replace("down_revision = None", f"down_revision = {before!r}")
        (self.versions / f"{revision}.py").write_text(text)

    def upgrade(self) -> None:
        alembic.command.upgrade(self._config, "head")


@pytest.fixture(params=["psycopg", "psycopg2"])
def migrations(request, empty_database, tmp_path):
    return Migrations(tmp_path, empty_database, request.param)


def test_a_revision_installs_faultline(empty_database, migrations):
    migrations.add("faultline_01", None)

    (migrations.versions / "orders.py").write_text(OTHER)

    migrations.upgrade()
    migrations.upgrade()

    assert migrate.check(empty_database).is_current
    assert rows(empty_database, "select to_regclass('public.orders')::text") == [("orders",)]


def test_a_revision_brings_an_older_schema_to_this_version(empty_database, migrations, monkeypatch):
    older = 10
    with made_by(older, empty_database, monkeypatch):
        assert migrate.check(empty_database).number == older
    migrations.add("faultline_02", None, "--since", str(older))

    migrations.upgrade()

    assert migrate.check(empty_database).is_current


def test_a_revision_renews_functions_of_the_same_schema(database, tmp_path, db):
    db.execute("update faultline.settings set functions = 'of another release'")
    migrations = Migrations(tmp_path, database, "psycopg")
    migrations.add("faultline_02", None, "--since", str(LATEST))

    migrations.upgrade()

    assert migrate.check(database).is_current


def test_a_revision_that_fails_leaves_nothing(empty_database, migrations):
    migrations.add("faultline_01", None)
    file = migrations.versions / "faultline_01.py"
    file.write_text(file.read_text().replace("def downgrade", "    raise ZeroDivisionError\n\ndef downgrade"))

    with pytest.raises(ZeroDivisionError):
        migrations.upgrade()

    assert migrate.check(empty_database).number == 0


def test_a_number_that_is_none_is_refused():
    newer = CliRunner().invoke(root, ["migrate", "--sql", "--since", str(LATEST + 1)])
    alone = CliRunner().invoke(root, ["migrate", "--since", "1"])

    assert (newer.exit_code != 0, alone.exit_code != 0) == (True, True)
    assert f"the schemas 1 to {LATEST}" in newer.output
    assert "--since is for --sql" in alone.output


# Sentry


class Kept(Transport):
    """What would have been sent."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def capture_envelope(self, envelope: Any) -> None:
        self.events += [item.get_event() for item in envelope.items if item.get_event()]


@pytest.fixture
def sentry():
    kept = Kept()
    yield kept
    sentry_sdk.init()


def test_sentry_hears_of_a_last_attempt_with_its_job_and_of_deaths(database, sentry, caplog):
    app: Any = Faultline(database, pooler="none")
    given = {"app": app, "Job": Job, "JobEvent": JobEvent, "Snooze": Snooze, "Dead": Dead}
    names: dict[str, Any] = {**given, "Cancel": type(None)}
    exec(recipe("import sentry_sdk").replace("(Snooze, Cancel, Dead)", "(Snooze, Dead)"), names)
    sentry_sdk.init("http://key@127.0.0.1:9/1", transport=sentry, default_integrations=False)

    @app.task(queue="billing", max_attempts=2, retry=Constant(timedelta(0)))
    async def broken() -> None:
        raise ValueError("no such order")

    @app.task
    async def hopeless() -> None:
        raise Dead("the account is closed")

    jobs = broken.enqueue(), hopeless.enqueue()
    with caplog.at_level(logging.CRITICAL):
        app.run_worker(stop_after=4)
    app.close()

    for job in jobs:
        with pytest.raises(JobDead):
            job.result(timeout=1)
    (error,) = [event for event in sentry.events if "exception" in event]
    assert error["exception"]["values"][0]["value"] == "no such order"
    assert error["transaction"] == "broken"
    assert error["tags"]["queue"] == "billing"
    assert (error["contexts"]["job"]["id"], error["contexts"]["job"]["attempt"]) == (jobs[0].id, 2)
    told = sorted(event["message"] for event in sentry.events if "message" in event)
    assert told == [f"job {jobs[0].id} of broken is dead", f"job {jobs[1].id} of hopeless is dead"]


# Flask


def test_a_request_that_fails_leaves_no_job(database, monkeypatch):
    monkeypatch.setenv("FAULTLINE_DSN", database)
    names: dict[str, Any] = {"url": url(database, "psycopg"), "Job": Job, "__name__": "shop"}
    with Faultline(database) as outer:
        text = recipe("from flask import Flask")
        with_table = "with flask_app.app_context():\n    db.create_all()\n\nassert"
        exec(text.replace("\nassert", f"\n{with_table}"), names)
        client = names["flask_app"].test_client()

        assert client.post("/orders/8").status_code == 500  # it is there already
        assert client.post("/orders/9").status_code == 201
        assert [job.args for job in outer.jobs()] == [{"order_id": 9}, {"order_id": 8}]

        assert names["app"].run_worker(until_empty=True, queues="billing") == 0
        assert [job.state for job in outer.jobs()] == ["succeeded", "succeeded"]
    names["app"].close()
    with names["flask_app"].app_context():
        names["db"].session.remove()
        names["db"].engine.dispose()


# Pydantic


class Item(BaseModel):
    sku: str
    number: int


class Receipt(BaseModel):
    total: int


def test_models_are_arguments_and_results_of_jobs_in_a_worker(database):
    with Faultline(database, pooler="none") as app:

        @app.task
        def bill(items: list[Item]) -> Receipt:
            assert all(isinstance(item, Item) for item in items)
            return Receipt(total=sum(item.number for item in items))

        handle = bill.enqueue([Item(sku="tea", number=3), Item(sku="milk", number=4)])
        app.run_worker(until_empty=True)

        assert handle.result(timeout=1) == Receipt(total=7)
        assert handle.info().args == {"items": [{"sku": "tea", "number": 3}, {"sku": "milk", "number": 4}]}
