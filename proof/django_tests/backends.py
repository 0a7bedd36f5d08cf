"""Stand-ins for the backends that Django's tests name: Faultline's, with what those tests ask of one."""

import asyncio
import threading
from typing import Any

import msgspec
from django.db import connections

from faultline.integrations.django import app
from faultline.integrations.django.backend import FaultlineBackend
from faultline.integrations.django.carrier import DjangoCarrier
from faultline.integrations.django.models import JobRow
from faultline.job import NewJob
from faultline.store import calls


class Backend(FaultlineBackend):
    """In the place of DummyBackend: tasks wait, and `results` lists them."""

    def clear(self) -> None:
        """End what earlier lines of a test have enqueued."""
        for job in JobRow.objects.filter(state="queued"):
            DjangoCarrier(connections["default"]).run(calls.cancel(job.pk))

    @property
    def results(self) -> list[Any]:
        """The tasks that wait."""
        return [self.get_result(str(job.pk)) for job in JobRow.objects.filter(state="queued").order_by("pk")]


class WorkedBackend(FaultlineBackend):
    """In the place of ImmediateBackend: a worker runs each task before `enqueue` returns."""

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        result = super().enqueue(task, args, kwargs)
        worker = threading.Thread(target=lambda: asyncio.run(app.arun_worker(until_empty=True)))
        worker.start()
        worker.join()
        result.refresh()
        return result

    def _job(self, task: Any, args: str) -> NewJob:
        return msgspec.structs.replace(super()._job(task, args), max_attempts=1)
