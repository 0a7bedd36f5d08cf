"""Faultline with Django: a task of django.tasks inside transaction.atomic(), completed with its rows."""

import os
import sys
from collections.abc import Sequence

from _adapter import HERE, INSERT, ONE_ROW, Payload, Probe, main
from faultline_ import FaultlineKeepingAll

os.environ["DJANGO_SETTINGS_MODULE"] = "_django"
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
os.environ["BENCH_DJANGO"] = "faultline"

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django_tasks import task  # noqa: E402

PROBE = Probe()


@task(transaction=True)
def bench(seq: int, kind: str, pad: str) -> None:
    PROBE.start({"seq": seq})
    with connection.cursor() as cursor:
        cursor.execute(INSERT, (seq, os.getpid()))


class FaultlineWithDjango(FaultlineKeepingAll):
    name = "faultline, Django"
    packages = ["faultline-queue", "django", "django-tasks", "psycopg"]
    settings = "manage.py faultline_worker with its defaults: 10 tasks at once, in threads; CONN_MAX_AGE=None"
    bulk_note = "enqueue() 1000 times in one transaction"
    phases = ONE_ROW
    row = (
        "`@task(transaction=True)`, a cursor of Django's connection: the row and the task's success in one "
        "transaction"
    )

    async def setup(self) -> None:
        call_command("migrate", verbosity=0)

    async def open(self) -> None: ...

    async def enqueue_many(self, jobs: Sequence[Payload]) -> None:
        import faultline_django_  # by the name under which workers know the task

        with transaction.atomic():
            for job in jobs:
                faultline_django_.bench.enqueue(**job)

    async def close(self) -> None: ...

    def worker_exec(self) -> list[str]:
        os.chdir(HERE)
        return [sys.executable, "-m", "django", "faultline_worker"]


if __name__ == "__main__":
    main(FaultlineWithDjango())
