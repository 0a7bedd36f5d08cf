"""Jobs of HTTP requests: bytes in, NewJob out. By msgspec, because this is the busiest route."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct

from faultline import bounds
from faultline.args.document import check_document
from faultline.errors import BadName, InputError, OutOfBounds
from faultline.job import NewJob
from faultline.server.problems import MALFORMED, RequestRefused
from faultline.task import MAX_ATTEMPTS
from faultline.unique import KeyRule

_NO_ARGS: Final = Raw(b"{}")
_NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"

TaskName = Annotated[str, Meta(min_length=1, max_length=bounds.TASK_CHARS_MAX, pattern=_NAME)]
QueueName = Annotated[str, Meta(min_length=1, max_length=bounds.QUEUE_CHARS_MAX, pattern=_NAME)]
Priority = Annotated[int, Meta(ge=bounds.PRIORITY_MIN, le=bounds.PRIORITY_MAX)]
Attempts = Annotated[int, Meta(ge=1, le=bounds.ATTEMPTS_MAX)]
Wait = Annotated[float, Meta(ge=0, le=bounds.DELAY_MAX.total_seconds())]
ExpiresIn = Annotated[
    float, Meta(ge=bounds.EXPIRES_IN_MIN.total_seconds(), le=bounds.DELAY_MAX.total_seconds())
]
LeaseTime = Annotated[float, Meta(ge=bounds.LEASE_MIN.total_seconds(), le=bounds.LEASE_MAX.total_seconds())]
RunTime = Annotated[float, Meta(ge=bounds.TIMEOUT_MIN.total_seconds(), le=bounds.TIMEOUT_MAX.total_seconds())]
Key = Annotated[str, Meta(min_length=1, max_length=bounds.KEY_CHARS_MAX)]


class Submission(Struct, forbid_unknown_fields=True, kw_only=True, gc=False):
    """One job to enqueue. Durations are in seconds."""

    task: TaskName
    args: Annotated[Raw, Meta(extra_json_schema={"type": "object"})] = msgspec.field(
        default_factory=lambda: _NO_ARGS
    )
    queue: QueueName = "default"
    priority: Priority = 0
    run_at: Annotated[datetime, Meta(tz=True)] | None = None
    delay_seconds: Wait | None = None
    max_attempts: Attempts = MAX_ATTEMPTS
    lease_seconds: LeaseTime | None = None
    timeout_seconds: RunTime | None = None
    key: Key | None = None
    key_seconds: Wait | None = None
    key_rule: KeyRule | None = None
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None
    expires_seconds: ExpiresIn | None = None

    def new_job(self, header_key: str | None = None, place: str = "") -> NewJob:
        """The job of the request, with the checks of every other API."""
        args = bytes(self.args)
        if args != b"{}":
            check_object(args, f"{place}args")
        if self.run_at is not None:
            bounds.check_run_at(self.run_at)
            if self.delay_seconds is not None:
                raise OutOfBounds(f"{place}run_at and delay_seconds both say when it is due; give one")
        return NewJob(
            task=self.task, args=args.decode(), queue=self.queue, priority=self.priority, run_at=self.run_at,
            delay=_span(self.delay_seconds), max_attempts=self.max_attempts,
            lease_for=_span(self.lease_seconds), timeout=_span(self.timeout_seconds),
            key=self._key(header_key), key_for=_span(self.key_seconds), key_rule=self.key_rule,
            expires_at=self._expires_at(place), expires_in=_span(self.expires_seconds),
        )  # fmt: skip

    def _expires_at(self, place: str) -> datetime | None:
        if self.expires_at is not None:
            bounds.check_run_at(self.expires_at, "expires_at")
            if self.expires_seconds is not None:
                raise OutOfBounds(f"{place}expires_at and expires_seconds both say when it expires; give one")
        return self.expires_at

    def _key(self, header_key: str | None) -> str | None:
        if header_key is not None and self.key is not None and header_key != self.key:
            raise BadName(
                "the Idempotency-Key header and the field key differ; give one of them, or both the same"
            )
        key = self.key if header_key is None else header_key
        return None if key is None else bounds.check_key(key)


class Batch(Struct, forbid_unknown_fields=True):
    """Many jobs to enqueue, all of them or none."""

    jobs: list[Submission]


class _RawBatch(Struct, forbid_unknown_fields=True):
    """A batch whose jobs are still bytes: skipping a job costs little, whatever is in it."""

    jobs: list[Raw]


class _RawArgs(Struct):
    """The args of a job; a member that stands twice counts as its last."""

    args: Raw = msgspec.field(default_factory=lambda: _NO_ARGS)


ENVELOPE_BYTES_MAX: Final = 16_384
"""The fields of a job without its args. Members may repeat, and a number may take 15 us."""

_one: Final = msgspec.json.Decoder(Submission)
_raw_batch: Final = msgspec.json.Decoder(_RawBatch)
_raw_args: Final = msgspec.json.Decoder(_RawArgs)


def decode_one(body: bytes | Raw, header_key: str | None = None, place: str = "") -> NewJob:
    """The job of a body, or an error that names the field."""
    if len(memoryview(body)) > ENVELOPE_BYTES_MAX:
        _check_envelope(body, place)
    asked: Submission = _decoded(_one, body, place)
    return asked.new_job(header_key, place)


def decode_many(body: bytes, jobs_max: int) -> Iterator[NewJob]:
    """The jobs of a body, each decoded as it is asked for; a wrong one is refused with its number."""
    batch: _RawBatch = _decoded(_raw_batch, body)
    jobs = batch.jobs
    if not 1 <= len(jobs) <= jobs_max:
        raise OutOfBounds(f"jobs holds 1 to {jobs_max:,} jobs; got {len(jobs):,}")
    return (decode_one(job, place=f"jobs[{number}].") for number, job in enumerate(jobs))


def _check_envelope(body: bytes | Raw, place: str) -> None:
    raw: _RawArgs = _decoded(_raw_args, body, place)
    beside = len(memoryview(body)) - len(memoryview(raw.args))
    if beside > ENVELOPE_BYTES_MAX:
        raise OutOfBounds(
            f"{place[:-1] or 'the job'} has {beside:,} bytes beside its args; "
            f"at most {ENVELOPE_BYTES_MAX:,}, with each field once"
        )


def _decoded(decoder: Any, body: bytes | Raw, place: str = "") -> Any:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        said = str(error)
        if place:
            before, at, path = said.partition(" - at `$.")
            said = f"{before} - at `$.{place}{path}" if at else f"{said} - at `$.{place[:-1]}`"
        raise InputError(said.replace(" - at `$.", " at `").replace(" - at `$", " at `body")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(MALFORMED, f"the body is not JSON: {error}") from None


def check_object(data: bytes, subject: str) -> None:
    """Refuse args that are not an object, or hold what PostgreSQL cannot."""
    check_document(data, subject, kind=dict)


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def schemas() -> Mapping[str, Any]:
    """The JSON Schemas of the types decoded here, for the OpenAPI document."""
    _, components = msgspec.json.schema_components(
        [Submission, Batch], ref_template="#/components/schemas/{name}"
    )
    return components
