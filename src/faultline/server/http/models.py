"""Models of the API's answers: jobs, queues, workers, entries. Ids are numbers, tokens are strings.

JavaScript keeps integers up to 2^53. A token grows past that with the server's timeline; an id never does.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from faultline.job import JobInfo, JobState, LedgerEntry, Refusal
from faultline.store.rows import AuditedAct, QueueInfo, WorkerInfo

Token = Annotated[int, PlainSerializer(str, return_type=str)]


class Model(BaseModel):
    model_config = ConfigDict(from_attributes=True, ser_json_inf_nan="null")


class Submitted(Model):
    """A job that was asked for."""

    id: int
    new: bool = Field(description="False when its key names a job that was there already.")


class SubmittedMany(Model):
    """Jobs that were asked for together, in the order given."""

    ids: list[int]


class JobOutline(Model):
    """A job in a list: without args and result, its error cut short."""

    id: int
    state: JobState
    task: str
    queue: str
    priority: int
    attempt: int
    max_attempts: int
    crashes: int
    run_at: datetime
    created_at: datetime
    claimed_at: datetime | None
    lease_until: datetime | None
    finished_at: datetime | None
    worker: str | None
    token: Token | None
    error: str | None
    key: str | None
    damage: str | None = Field(description="What is wrong with its row, changed by hand; else null.")


class JobView(JobOutline):
    """A job with all that is known of it."""

    args: Any
    result: Any


class JobPage(Model):
    """Jobs, newest first."""

    jobs: list[JobOutline]
    next: str | None = Field(description="Give it as `cursor` for the next page; null on the last one.")


class LedgerEntryView(Model):
    """One lease that ended."""

    job_id: int
    token: Token
    outcome: str
    attempt: int
    worker: str | None
    claimed_at: datetime | None
    settled_at: datetime
    error: str | None
    task: str
    queue: str


class RefusedWrite(Model):
    """A write that came too late and was refused."""

    job_id: int
    token: Token
    current_token: Token | None
    reason: str
    worker: str | None
    first_at: datetime
    last_at: datetime
    times: int


class TimelineMoment(Model):
    """One lease, or one refused write, at its place in time."""

    kind: Literal["lease", "running", "refused"]
    token: Token
    worker: str | None
    start: datetime
    end: datetime | None
    outcome: str
    detail: str | None


class QueueView(Model):
    """A queue: how many of its jobs are where, and the age in seconds of the first that is due."""

    queue: str
    paused: bool
    keep: Literal["full", "outline", "nothing"]
    due: int
    running: int
    scheduled: int
    dead: int
    lag_seconds: float | None
    max_depth: int | None
    full: bool
    age_after_seconds: float | None


class WorkerView(Model):
    """A worker as it last said it was."""

    id: int
    name: str
    host: str
    pid: int
    queues: list[str]
    jobs_max: int
    version: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    running: int
    silent: bool


class ActView(Model):
    """An act of a person or a client: who, when, what, on what, why."""

    id: int
    at: datetime
    actor: str
    role: str
    verb: str
    job_id: int | None
    queue: str | None
    detail: dict[str, Any] | None
    reason: str | None


class ActPage(Model):
    """Acts, newest first."""

    acts: list[ActView]
    next: str | None = Field(description="Give it as `cursor` for the next page; null on the last one.")


class Stats(Model):
    """The whole at a glance."""

    due: int
    running: int
    scheduled: int
    dead: int
    lag_seconds: float = Field(description="Of the slowest queue that is not paused.")
    queues: int
    paused: int
    workers: int
    silent_workers: int
    round_age_seconds: float | None = Field(
        description="Since the watchdog's last round; null when there was none."
    )


class ProblemView(Model):
    """Why a request was not carried out, after RFC 9457."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    what_to_do: str
    request_id: str


def outlines(jobs: Iterable[JobInfo]) -> list[JobOutline]:
    return [JobOutline.model_validate(job) for job in jobs]


def view(job: JobInfo) -> bytes:
    """A JobView as it is sent; the job's args and result are JSON text already, and stay unchanged."""
    outline = JobOutline.model_validate(job).model_dump_json().encode()
    return b'%s,"args":%s,"result":%s}' % (outline[:-1], job.args or b"null", job.result or b"null")


def bare_view(job: JobInfo) -> bytes:
    """The job without the data of its producer and its handler, for callers that may not read it."""
    return view(replace(job, args=None, result=None, error=None, key=None))


def entries(found: list[LedgerEntry]) -> list[LedgerEntryView]:
    return [LedgerEntryView.model_validate(entry) for entry in found]


def refused_writes(found: list[Refusal]) -> list[RefusedWrite]:
    return [RefusedWrite.model_validate(refusal) for refusal in found]


def queue_views(found: Iterable[QueueInfo]) -> list[QueueView]:
    return [QueueView.model_validate(queue) for queue in found]


def worker_views(found: Iterable[WorkerInfo]) -> list[WorkerView]:
    return [WorkerView.model_validate(worker) for worker in found]


def act_views(found: Iterable[AuditedAct]) -> list[ActView]:
    return [ActView.model_validate(act) for act in found]


def timeline(job: JobInfo, ended: Sequence[LedgerEntry], refused: Sequence[Refusal]) -> list[TimelineMoment]:
    """Everything that happened to a job, in order; a lease that is still held has no end."""
    moments = [
        TimelineMoment(
            kind="lease", token=entry.token, worker=entry.worker, start=entry.claimed_at or entry.settled_at,
            end=entry.settled_at, outcome=entry.outcome, detail=entry.error,
        )
        for entry in ended
    ]  # fmt: skip
    if job.state == JobState.RUNNING and job.token and job.claimed_at:
        moments.append(
            TimelineMoment(
                kind="running", token=job.token, worker=job.worker, start=job.claimed_at, end=None,
                outcome="running", detail=None,
            )
        )  # fmt: skip
    moments += [
        TimelineMoment(
            kind="refused", token=refusal.token, worker=refusal.worker, start=refusal.first_at,
            end=refusal.last_at, outcome=refusal.reason, detail=_newer(refusal),
        )
        for refusal in refused
    ]  # fmt: skip
    return sorted(moments, key=lambda moment: (moment.start, moment.token))


def _newer(refusal: Refusal) -> str | None:
    return None if refusal.current_token is None else f"the job's token was {refusal.current_token}"
