"""The database backend of django-tasks, with its own worker."""

import os
import sys
from collections.abc import Sequence

from _adapter import HERE, INSERT, MODE, ONE_ROW, Payload, Probe, System, main

os.environ["DJANGO_SETTINGS_MODULE"] = "_django"
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = (
    "1"  # the harness calls from a loop of its own, with nothing beside it
)

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django_tasks import task  # noqa: E402

PROBE = Probe()


@task
def bench(seq: int, kind: str, pad: str) -> None:
    PROBE.start({"seq": seq})
    if MODE == "one_row":
        with connection.cursor() as cursor:
            cursor.execute(INSERT, (seq, os.getpid()))


class DjangoTasksDb(System):
    name = "django-tasks-db"
    packages = ["django", "django-tasks", "django-tasks-db", "psycopg"]
    settings = "manage.py db_worker, one task at a time (all it does), -v0; CONN_MAX_AGE=None"
    bulk_note = "no bulk API: enqueue() 1000 times in one transaction"
    remaining = {
        "sql": "select count(*) from django_tasks_database_dbtaskresult where status in ('READY', 'RUNNING')"
    }
    snapshot = (
        "select id, status, started_at, finished_at, worker_ids from django_tasks_database_dbtaskresult"
    )
    phases = ONE_ROW
    row = "a cursor of Django's own connection; one insert, committed by itself"

    async def setup(self) -> None:
        call_command("migrate", verbosity=0)

    async def enqueue_one(self, job: Payload) -> None:
        task_of_project().enqueue(**job)

    async def enqueue_many(self, jobs: Sequence[Payload]) -> None:
        with transaction.atomic():
            for job in jobs:
                task_of_project().enqueue(**job)

    def worker_exec(self) -> list[str]:
        os.chdir(HERE)
        return [sys.executable, "-m", "django", "db_worker", "--no-startup-delay", "--no-reload", "-v0"]


def task_of_project() -> object:
    """The task under the name that workers import: this file may have been started as the program."""
    import django_tasks_

    return django_tasks_.bench


if __name__ == "__main__":
    main(DjangoTasksDb())
