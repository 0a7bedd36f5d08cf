"""A project with Faultline: migrate, check, the admin, and the worker's command."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.db import connection, connections, transaction
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from faultline.errors import ConfigError
from faultline.integrations.django import app, conf
from faultline.integrations.django.checks import check_schema, check_settings
from faultline.integrations.django.task_backend.interface import task_backends
from tests.integrations.django.conftest import project_on
from tests.integrations.django.shop import tasks


@pytest.fixture
def empty_project(empty_database):
    yield from project_on(empty_database)


def ids(messages):
    return [message.id for message in messages]


def test_migrate_installs_the_schema_and_updates_it(empty_project):
    assert ids(check_schema(databases=["default"])) == ["faultline.W001"]
    told = io.StringIO()

    call_command("migrate", run_syncdb=True, stdout=told)

    assert "schema installed in database default" in told.getvalue()
    assert check_schema(databases=["default"]) == []
    with psycopg.connect(empty_project, autocommit=True) as conn:
        conn.execute("update faultline.settings set functions = 'of an older release'")
    assert ids(check_schema(databases=["default"])) == ["faultline.W001"]
    told = io.StringIO()
    call_command("migrate", stdout=told)
    assert "schema updated" in told.getvalue()
    told = io.StringIO()
    call_command("migrate", stdout=told)
    assert "schema" not in told.getvalue()


def test_a_newer_schema_is_not_touched(project):
    with psycopg.connect(project, autocommit=True) as conn:
        conn.execute("insert into faultline.migrations (number, name) values (9999, 'of tomorrow')")

    with pytest.raises(CommandError, match="upgrade faultline-queue"):
        call_command("migrate", verbosity=0)


def test_another_database_is_left_alone(empty_project):
    with override_settings(FAULTLINE={"DATABASE": "other"}):
        call_command("migrate", verbosity=0)

    with psycopg.connect(empty_project) as conn:
        assert conn.execute("select to_regnamespace('faultline')").fetchone() == (None,)


def test_the_models_have_no_migration_to_make(project):
    call_command("makemigrations", "faultline", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"DATABSE": "jobs"}, ["faultline.E001"]),
        ("jobs", ["faultline.E001"]),
        ({"TASK_MODULES": "shop.jobs"}, ["faultline.E001"]),
        ({"DATABASE": "nowhere"}, ["faultline.E002"]),
        ({"DATABASE": "lite"}, ["faultline.E003"]),
        ({}, []),
    ],
)
def test_a_wrong_setting_is_told(project, setting, told):
    lite = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    connections.databases["lite"] = connections.configure_settings({"lite": lite, "default": {}})["lite"]
    try:
        with override_settings(FAULTLINE=setting):
            assert ids(check_settings()) == told
    finally:
        del connections.databases["lite"]


def test_sqlite_is_refused_by_name(project):
    lite = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    connections.databases["lite"] = connections.configure_settings({"lite": lite, "default": {}})["lite"]
    with pytest.raises(ConfigError, match="sqlite"):
        conf.dsn_of("lite")
    del connections.databases["lite"]


def test_a_database_used_by_psycopg2_is_told(project, monkeypatch):
    psycopg2 = pytest.importorskip("psycopg2")
    monkeypatch.setattr(type(connections["default"]), "Database", psycopg2)

    assert ids(check_settings()) == ["faultline.E004"]


def test_a_wrong_entry_of_tasks_is_told(project):
    backend = "faultline.integrations.django.backend.FaultlineBackend"
    with override_settings(TASKS={"default": {"BACKEND": backend, "QUEUES": ["a b"]}}):
        assert ids(task_backends["default"].check()) == ["faultline.E005"]
    with override_settings(TASKS={"default": {"BACKEND": backend, "OPTIONS": {"retires": 3}}}):
        assert ids(task_backends["default"].check()) == ["faultline.E005"]
    with override_settings(INSTALLED_APPS=["tests.integrations.django.shop"]):
        assert ids(task_backends["default"].check()) == ["faultline.E007"]
    assert task_backends["default"].check() == []


def test_manage_py_check_looks_at_the_entries_of_tasks(project):
    """`django_tasks` looks at them itself only where it is in INSTALLED_APPS."""
    backend = "faultline.integrations.django.backend.FaultlineBackend"
    tasks = {"default": {"BACKEND": backend, "OPTIONS": {"max_attempt": 3}}}
    with override_settings(TASKS=tasks), pytest.raises(SystemCheckError) as told:
        call_command("check")

    assert str(told.value).count("faultline.E005") == 1
    assert "did you mean max_attempts?" in str(told.value)


def test_the_address_has_the_options_of_the_connection(project, monkeypatch):
    options = {"assume_role": "shop", "pool": True, "sslmode": "prefer", "isolation_level": 4}
    monkeypatch.setitem(connections["default"].settings_dict, "OPTIONS", options)

    told = conf.dsn_of("default")

    assert "sslmode=prefer" in told
    assert "options='-c role=shop'" in told
    assert "pool" not in told


def test_the_admin_lists_jobs_and_changes_none(project):
    from django.contrib.auth.models import User

    User.objects.create_superuser("ada", password="secret")
    job = tasks.add.using(queue_name="mail").enqueue(1)
    failed = tasks.decline.enqueue(7)
    call_command("faultline_worker", queues=["default"], until_empty=True, verbosity=0)
    client = Client()
    client.force_login(User.objects.get())
    path = "/admin/faultline/jobrow/"

    everything = client.get(path).content.decode()
    assert "tests.integrations.django.shop.tasks.add" in everything
    assert f"{path}{job.id}/change/" in everything
    dead = client.get(path, {"state": "dead"}).content.decode()
    assert f"{path}{failed.id}/change/" in dead
    assert f"{path}{job.id}/change/" not in dead
    of_mail = client.get(path, {"queue": "mail"}).content.decode()
    assert f"{path}{failed.id}/change/" not in of_mail
    of_task = client.get(path, {"task": tasks.decline.module_path}).content.decode()
    assert f"{path}{failed.id}/change/" in of_task
    assert f"{path}{job.id}/change/" not in of_task
    assert f"{path}{job.id}/change/" in client.get(path, {"q": job.id}).content.decode()
    assert "Declined: order 7" in client.get(f"{path}{failed.id}/change/").content.decode()
    assert client.post(f"{path}{job.id}/change/", {"state": "dead"}).status_code == 403
    assert client.get(f"{path}{job.id}/delete/").status_code == 403
    assert client.get(f"{path}add/").status_code == 403


def test_the_admin_answers_a_wrong_filter_as_django_does(project):
    from django.contrib.auth.models import User

    User.objects.create_superuser("ada", password="secret")
    tasks.add.enqueue(1)
    client = Client()
    client.force_login(User.objects.get())
    path = "/admin/faultline/jobrow/"

    for wrong in ({"task": "\x00"}, {"queue": "\x00"}, {"task__regex": "("}, {"worker__regex": "["}):
        answer = client.get(path, wrong)
        assert (answer.status_code, answer.headers.get("location")) == (302, f"{path}?e=1"), wrong


def test_the_admins_list_reads_no_documents(project):
    """With `damage` in it, a list of 300,000 jobs took 14 s of the database."""
    from django.contrib.auth.models import User

    User.objects.create_superuser("ada", password="secret")
    client = Client()
    client.force_login(User.objects.get())
    with CaptureQueriesContext(connection) as asked:
        assert client.get("/admin/faultline/jobrow/").status_code == 200

    listing = [query["sql"] for query in asked if '"faultline"."jobs"."worker"' in query["sql"]]
    assert listing
    assert not [sql for sql in listing if '"args"' in sql or '"result"' in sql or '"damage"' in sql]


def test_a_job_cannot_be_written_by_its_model(project):
    from faultline.integrations.django.models import JobRow

    tasks.add.enqueue(1)
    job = JobRow.objects.get()

    with pytest.raises(TypeError, match="cancel"):
        job.save()
    with pytest.raises(TypeError, match="cancel"):
        job.delete()


class Project:
    """manage.py of the project, in a process of its own."""

    def __init__(self, dsn):
        self.environment = {
            **os.environ,
            "FAULTLINE_DSN": dsn,
            "DJANGO_SETTINGS_MODULE": "tests.integrations.django.settings",
            "PYTHONPATH": str(Path.cwd()),
        }

    def start(self, *args, stdout=subprocess.PIPE):
        return subprocess.Popen(
            [sys.executable, "-m", "django", *args],
            env=self.environment, stdout=stdout, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip


def ended(result, seconds=60.0):
    give_up_at = time.monotonic() + seconds
    while not result.is_finished:
        assert time.monotonic() < give_up_at, result
        time.sleep(0.05)
        result.refresh()
    return result


def test_a_worker_that_died_with_a_task_is_followed_by_a_child_that_runs_it_alone(project):
    result = tasks.die_once.enqueue(7)
    first = Project(project).start("faultline_worker", "--lease", "1s", "--until-empty")
    first.communicate(timeout=60)
    assert first.returncode == -9
    second = Project(project).start("faultline_worker", "--lease", "1s")
    try:
        ended(result)
    finally:
        second.terminate()
        said = second.communicate(timeout=60)[0]

    assert second.returncode == 0, said
    assert result.return_value == "survived"
    assert result.attempts == 2
    assert "cannot run alone" not in said
    assert [error.exception_class.__name__ for error in result.errors] == ["WorkersKeepDying"]


def test_ctrl_c_ends_a_worker_cleanly(project):
    result = tasks.add.enqueue(1)
    worker = Project(project).start("faultline_worker")
    try:
        ended(result)
    finally:
        worker.send_signal(signal.SIGINT)
        said = worker.communicate(timeout=60)[0]

    assert worker.returncode == 0, said
    assert "tasks, database default" in said
    assert "Traceback" not in said


def test_a_wrong_option_is_told(project):
    for options in (["--lease", "soon"], ["--queues", "a b"], ["--concurrency", "0"]):
        worker = Project(project).start("faultline_worker", *options)
        said = worker.communicate(timeout=60)[0]
        assert worker.returncode != 0
        assert "Traceback" not in said, said


def test_the_command_line_of_faultline_takes_the_project(project):
    result = tasks.add.enqueue(1)
    done = subprocess.run(
        [
            sys.executable, "-m", "faultline", "worker", "faultline.integrations.django.process",
            "--until-empty", "--processes", "2",
        ],
        env=Project(project).environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert ended(result).return_value == 1


def test_a_task_that_only_another_backend_declared_is_found(project):
    assert tasks.about.module_path in app.registry or app.registry.get(tasks.about.module_path)
    assert app.registry.get("os.system") is None
    assert app.registry.get("tests.integrations.django.shop.tasks.Declined") is None


def test_test_cases_of_both_kinds_work_and_leave_no_session_behind(project):
    """The database of the tests is dropped at their end, which a session of ours would prevent."""
    running = Project(project).start("test", "tests.integrations.django.shop.cases")
    said = running.communicate(timeout=100)[0]

    assert running.returncode == 0, said
    assert "OK" in said
    assert "Ran 5 tests" in said


def test_a_worker_inside_a_transaction_is_refused(project):
    """It would wait for ever for locks of the transaction that waits for it."""
    with transaction.atomic(), pytest.raises(CommandError, match="TransactionTestCase"):
        call_command("faultline_worker", until_empty=True, verbosity=0)


def test_a_changed_file_starts_the_worker_again(project, tmp_path):
    """Jobs in hand finish first: none is left to expire."""
    told = tmp_path / "worker.log"

    def starts():
        return told.read_text().count("tasks, database default")

    with told.open("w") as log:
        worker = Project(project).start("faultline_worker", "--autoreload", stdout=log)
    try:
        until(lambda: starts() == 1)
        slow = tasks.wait.enqueue(3)
        until(lambda: tasks.wait.get_result(slow.id).status == "RUNNING")
        give_up_at = time.monotonic() + 60
        while starts() < 2:  # its first look at the files may come after the first change
            assert time.monotonic() < give_up_at, told.read_text()
            os.utime(tasks.__file__)
            time.sleep(1)
        assert ended(slow).attempts == 1
        assert ended(tasks.add.enqueue(1)).return_value == 1
    finally:
        worker.send_signal(signal.SIGINT)
        worker.wait(60)

    assert "Traceback" not in told.read_text()


def until(condition, seconds=60.0):
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
