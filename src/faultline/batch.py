"""Batches: a handler that is given many jobs in one call, and says of each how it ended."""

import asyncio
import dataclasses
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from faultline.errors import AlreadySettled, ConfigError, OutOfBounds
from faultline.job import Job
from faultline.outcome import Cancel, Dead, Snooze

A = TypeVar("A")

BATCH_MAX: Final = 1_000
BATCH_WAIT_MAX: Final = timedelta(minutes=1)
BATCH_WAIT: Final = timedelta(milliseconds=10)
"""How long a batch that is not full waits for more jobs."""


class BatchItem(Generic[A]):
    """One job of a batch: its `job`, its arguments as `args`, and what becomes of it.

    A job of which nothing is said has succeeded when the handler returns, and failed when it raises.

    >>> from dataclasses import dataclass
    >>> from faultline import Faultline
    >>> @dataclass
    ... class Document:
    ...     id: int
    >>> app = Faultline("dbname=shop")
    >>> @app.task(batch=100)
    ... async def index(items: list[BatchItem[Document]]) -> None:
    ...     for item in items:
    ...         item.done({"indexed": item.args.id})
    >>> index.new(id=7).args
    '{"id":7}'
    """

    __slots__ = ("_ended", "_home", "_loop", "_share", "args", "job")

    def __init__(self, job: Job, args: A, share: "asyncio.Future[Share] | None" = None) -> None:
        self.job = job
        self.args = args
        self._share = share
        self._loop = None if share is None else share.get_loop()
        self._home = threading.get_ident()
        self._ended = False

    @property
    def has_ended(self) -> bool:
        """Whether its outcome was said already."""
        return self._ended

    def done(self, result: Any = None) -> None:
        """The job succeeded; it is recorded at once, while the others go on."""
        self._end(Share(result))

    def fail(self, error: BaseException) -> None:
        """The job failed: it is tried again, or dead, as the task's retry rules say of this error."""
        self._end(Share(None, error))

    def end(self, outcome: Snooze | Cancel | Dead) -> None:
        """The job ends as a handler of one job would say it: put off, cancelled, or dead."""
        self._end(Share(outcome))

    def _end(self, share: "Share") -> None:
        if self._ended:
            raise AlreadySettled(
                f"the outcome of job {self.job.id} in this batch was said already; it stands. Look at "
                "item.has_ended first"
            )
        self._ended = True
        if self._loop is None:
            return  # made by hand, for a test
        if threading.get_ident() == self._home:
            self._tell(share)
        else:
            self._loop.call_soon_threadsafe(self._tell, share)

    def _tell(self, share: "Share") -> None:
        if self._share is not None and not self._share.done():  # else its lease is lost
            self._share.set_result(share)

    def __repr__(self) -> str:
        return f"BatchItem(job={self.job.id})"


class Share(msgspec.Struct, frozen=True):
    """What a batch says of one of its jobs: a value, or an error."""

    value: Any
    error: BaseException | None = None


def check_batch(batch: int, batch_wait: timedelta) -> None:
    """Refuse a size or a wait that cannot be.

    >>> check_batch(100, timedelta(milliseconds=50))
    """
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= BATCH_MAX:
        raise OutOfBounds(f"batch goes from 1 to {BATCH_MAX} jobs; got {batch!r:.60}")
    if not isinstance(batch_wait, timedelta) or not timedelta(0) <= batch_wait <= BATCH_WAIT_MAX:
        raise OutOfBounds(f"batch_wait is a timedelta from zero to one minute; got {batch_wait!r:.60}")


def end_rest(items: Sequence[BatchItem[Any]], said: Any) -> None:
    """End the items of which nothing was said; `said` is what the handler returned."""
    results: Mapping[Any, Any] = said if isinstance(said, Mapping) else {}
    for item in items:
        if not item.has_ended:
            value = results.get(item.job.id)
            if isinstance(value, BaseException) and not isinstance(value, Snooze | Cancel | Dead):
                item.fail(value)
            else:
                item._end(Share(value))


def fail_rest(items: Sequence[BatchItem[Any]], error: BaseException) -> None:
    """Fail the items of which nothing was said."""
    for item in items:
        if not item.has_ended:
            item.fail(error)


def args_type(handler: Callable[..., Any], task: str) -> type[Any]:
    """The class of the arguments of one job, by the annotation of a batch handler."""
    example = (
        f"task {task}: a batch handler takes one parameter, such as `items: list[BatchItem[Document]]`; "
        "Document is a dataclass or msgspec.Struct of one job's arguments"
    )
    try:
        hints = get_type_hints(handler)
    except Exception as error:
        raise ConfigError(f"{example}; its annotations cannot be resolved: {error}") from None
    parameters = list(inspect.signature(handler).parameters)
    hint = hints.get(parameters[0]) if len(parameters) == 1 else None
    item = get_args(hint)[0] if get_origin(hint) in (list, Sequence) and get_args(hint) else None
    kind = get_args(item)[0] if get_origin(item) is BatchItem else None
    if not isinstance(kind, type):
        raise ConfigError(example)
    if not (dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct)):
        raise ConfigError(f"{example}; {kind.__name__} is neither")
    return kind


def parameters_of_args(kind: type[Any], task: str) -> Mapping[str, inspect.Parameter]:
    """The arguments of one job, by name."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except Exception as error:
        raise ConfigError(f"task {task}: a field of {kind.__name__} cannot be resolved: {error}") from None
    return {
        name: parameter.replace(annotation=hints.get(name, Any))
        for name, parameter in inspect.signature(kind).parameters.items()
    }
