"""Enqueues one job on a connection of Django and reads it back in the same round trip; reads one later."""

import json
from dataclasses import replace
from typing import Any, Final

from faultline.integrations.django.carrier import DjangoCarrier
from faultline.integrations.text_call import text_call
from faultline.job import JobInfo, NewJob
from faultline.store import calls, readers

_JOB: Final = """
select job.id, job.state, job.task, job.queue, job.priority, null as args, null as result, job.attempt,
       job.max_attempts, job.crashes, job.run_at, job.created_at, job.claimed_at, job.lease_until,
       job.finished_at, job.worker, job.token, job.error, job.key, null as damage
from ({enqueue}) as made(id), lateral faultline.get_job(made.id) as job
"""
"""Of two statements of one function each, the second sees what the first wrote."""


def enqueued(carrier: DjangoCarrier, new: NewJob) -> JobInfo:
    """Put a job in its queue; with a key, the job that was there already may be the answer."""
    sql, args = text_call(calls.enqueue(new), "pyformat")
    return readers.job(carrier.rows(_JOB.format(enqueue=sql), args)[0])


def found_job(carrier: DjangoCarrier, job_id: int) -> JobInfo | None:
    """The job of this id."""
    info = carrier.run(calls.get(job_id))
    return None if info is None else replace(info, args=_read(info.args), result=_read(info.result))


def _read(document: Any) -> Any:
    """A jsonb, which Django leaves as text."""
    return json.loads(document) if isinstance(document, str) else document
