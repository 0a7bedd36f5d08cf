"""A kind of work, with a name: the handler, its signature and its defaults; and the registry of them."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin

from faultline.args import ArgsCodec
from faultline.args.signature import parameters_of
from faultline.batch import BATCH_WAIT, args_type, check_batch, parameters_of_args
from faultline.bounds import (
    check_expires_in,
    check_lease_for,
    check_limit_name,
    check_max_attempts,
    check_max_crashes,
    check_priority,
    check_queue_name,
    check_task_name,
    check_timeout,
)
from faultline.errors import ConfigError, UnknownTask
from faultline.extensions import AppExtensions, Injection, injection_of
from faultline.job import Job
from faultline.limit import Limit
from faultline.retry import Retry, RetryPolicy, rules_of
from faultline.text.suggest import close_to
from faultline.unique import Unique

if TYPE_CHECKING:  # cron expressions are loaded with the first schedule
    from faultline.schedules import ScheduleSpec

MAX_ATTEMPTS: Final = 10
MAX_CRASHES: Final = 3
QUEUE: Final = "default"

Run = Literal["loop", "thread", "process"]
"""Where a handler runs: on the worker's loop, in one of its threads, or in a child process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """The facts that a worker needs to run jobs of one task; `spec_of` makes it.

    >>> def charge(job: Job, order_id: int) -> None: ...
    >>> spec = spec_of(charge, queue="billing")
    >>> spec.name, spec.takes_job, spec.is_async, spec.max_attempts
    ('charge', True, False, 10)
    """

    name: str
    handler: Callable[..., Any]
    takes_job: bool
    is_async: bool
    codec: ArgsCodec
    queue: str = QUEUE
    priority: int = 0
    max_attempts: int = MAX_ATTEMPTS
    max_crashes: int | None = MAX_CRASHES
    """The number of crashes alone after which a job dies; None: it never runs alone, only attempts count."""
    retry: Retry = field(default_factory=Retry)
    timeout: timedelta | None = None
    lease_for: timedelta | None = None
    run: Run | None = None
    """None becomes `loop` for an async handler and `thread` for a plain one."""
    transaction: bool | str = False
    """The handler needs `job.complete`: a worker without a DSN that serves its queue refuses to start.

    A name, such as "django", has the handler run inside the transaction that is provided by this name."""
    unique: Unique | None = None
    """Which other job of the same key counts as this one, unless `using` names a key or another rule."""
    batch: int | None = None
    """The most jobs that its handler is given in one call; None: it is given one."""
    batch_wait: timedelta = BATCH_WAIT
    batch_args: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    """Makes the arguments of one job of a batch."""
    expires_in: timedelta | None = None
    """How long a job may wait for its first claim."""
    parameters: Mapping[str, inspect.Parameter] = field(default_factory=dict, compare=False, repr=False)
    """The arguments of a job, by name."""
    limit: Limit | str | None = None
    """How many of its jobs run at once, and start in a time; a name is that of a limit of the app."""
    injection: Injection | None = None
    """What the worker adds to a call, beside `job`; None: nothing."""
    extensions: AppExtensions = field(default_factory=AppExtensions, compare=False, repr=False)
    """What its app has registered."""
    around: list[Callable[..., Any]] = field(init=False, compare=False, repr=False)
    """The middleware of its app, the list itself: the executor asks for each job whether it is empty."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "around", self.extensions.middleware.of_runs)
        check_task_name(self.name)
        _check_options(
            self.queue, self.priority, self.max_attempts, self.max_crashes, self.timeout, self.lease_for
        )
        if self.unique is not None and not isinstance(self.unique, Unique):
            raise ConfigError(
                f"task {self.name}: unique is a Unique, such as Unique.while_queued(); "
                f"got {self.unique!r:.60}"
            )
        if self.expires_in is not None:
            check_expires_in(self.expires_in)
        object.__setattr__(self, "run", _checked_run(self.run, self.is_async, self.name))


def _check_options(
    queue: str,
    priority: int,
    max_attempts: int,
    max_crashes: int | None,
    timeout: timedelta | None,
    lease_for: timedelta | None,
) -> None:
    # Before the handler is examined: the options were written first, and a lambda's name would hide them.
    check_queue_name(queue)
    check_priority(priority)
    check_max_attempts(max_attempts)
    if max_crashes is not None:
        check_max_crashes(max_crashes)
    if timeout is not None:
        check_timeout(timeout)
    if lease_for is not None:
        check_lease_for(lease_for)


def spec_of(
    handler: Callable[..., Any],
    *,
    name: str | None = None,
    queue: str = QUEUE,
    priority: int = 0,
    max_attempts: int = MAX_ATTEMPTS,
    max_crashes: int | None = MAX_CRASHES,
    retry: RetryPolicy | Retry | None = None,
    timeout: timedelta | None = None,
    lease_for: timedelta | None = None,
    run: Run | None = None,
    transaction: bool | str = False,
    forbid_unknown: bool = True,
    unique: Unique | None = None,
    expires_in: timedelta | None = None,
    batch: int | None = None,
    batch_wait: timedelta = BATCH_WAIT,
    limit: Limit | str | None = None,
    extensions: AppExtensions | None = None,
) -> TaskSpec:
    """Read a handler's signature and check its options.

    >>> async def ping(host: str, times: int = 1) -> None: ...
    >>> spec_of(ping, name="net.ping").codec.encode(("localhost",), {})
    '{"host":"localhost"}'
    """
    _check_options(queue, priority, max_attempts, max_crashes, timeout, lease_for)
    chosen = check_task_name(_own_name(handler) if name is None else name)
    _check_handler(handler, chosen)
    batch_args = None if batch is None else _batch_args(handler, batch, batch_wait, run, transaction, chosen)
    around = extensions or AppExtensions()
    read = _read(handler, chosen, batch_args, transaction, around)
    codec = ArgsCodec.of(handler, chosen, read.arguments, forbid_unknown=forbid_unknown)
    _check_limit(limit, codec, chosen)
    return TaskSpec(
        name=chosen,
        handler=handler,
        takes_job=read.takes_job,
        is_async=read.is_async,
        codec=codec,
        queue=queue,
        priority=priority,
        max_attempts=max_attempts,
        max_crashes=max_crashes,
        retry=rules_of(retry),
        timeout=timeout,
        lease_for=lease_for,
        run=run,
        transaction=transaction,
        unique=unique,
        batch=batch,
        batch_wait=batch_wait,
        batch_args=batch_args,
        expires_in=expires_in,
        parameters=read.arguments,
        limit=limit,
        injection=read.injection,
        extensions=around,
    )


class _Signature(NamedTuple):
    """What a handler takes."""

    takes_job: bool
    is_async: bool
    injection: Injection | None
    arguments: Mapping[str, inspect.Parameter]


def _read(
    handler: Callable[..., Any],
    task: str,
    batch_args: type[Any] | None,
    transaction: bool | str,
    around: AppExtensions,
) -> _Signature:
    parameters = parameters_of_args(batch_args, task) if batch_args else parameters_of(handler, task)
    _check_no_method(handler, parameters, task)
    takes_job = batch_args is None and _takes_job(parameters, task)
    rest = dict(list(parameters.items())[1:]) if takes_job else parameters
    is_async = _is_async(handler)
    injection, arguments = injection_of(task, rest, is_async, transaction, around)
    return _Signature(takes_job, is_async, injection, arguments)


def _batch_args(
    handler: Callable[..., Any],
    batch: int,
    batch_wait: timedelta,
    run: Run | None,
    transaction: bool | str,
    task: str,
) -> type[Any]:
    """What makes the arguments of one job of a batch."""
    check_batch(batch, batch_wait)
    if run == "process" or transaction:
        raise ConfigError(
            f"task {task}: a batch handler runs on the loop or in a thread, and opens its transactions "
            "itself: leave run and transaction out"
        )
    return args_type(handler, task)


def _check_limit(limit: Limit | str | None, codec: ArgsCodec, task: str) -> None:
    """The key of a limit is one of the handler's arguments: else each enqueue would be refused."""
    if isinstance(limit, str):
        check_limit_name(limit)
    elif limit is not None and not isinstance(limit, Limit):
        raise ConfigError(f"task {task}: limit is a Limit or the name of one; got {limit!r:.60}")
    elif limit is not None and limit.key_path:
        names = [argument.name for argument in codec.arguments]
        if limit.key_path[0] not in names:
            raise ConfigError(
                f"task {task}: its limit counts by {limit.key}, and the handler has no argument "
                f"{limit.key_path[0]}; it takes {', '.join(names) or 'nothing'}"
            )


def _own_name(handler: Callable[..., Any]) -> str:
    # Without its module: `__main__.charge` in a script would not be the `shop.charge` of its worker.
    return str(getattr(handler, "__name__", type(handler).__name__))


def _is_async(handler: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


def _checked_run(run: Run | None, is_async: bool, task: str) -> Run:
    if run is None:
        return "loop" if is_async else "thread"
    if run not in get_args(Run):
        raise ConfigError(f"task {task}: run is loop, thread or process; got {str(run)[:40]!a}")
    if run == "thread" and is_async:
        raise ConfigError(
            f"task {task}: an async handler runs on the loop, not in a thread; leave `run` out, or "
            'run="process" gives it a process of its own'
        )
    if run == "loop" and not is_async:
        raise ConfigError(
            f"task {task}: a plain handler would stop the loop for all others; make it async, or leave `run` "
            "out for a thread"
        )
    return run


def _check_handler(handler: Callable[..., Any], task: str) -> None:
    if not callable(handler) or isinstance(handler, type):
        raise ConfigError(
            f"task {task}: @app.task goes on a function, not on {handler!r}; options have names, as in "
            '@app.task(queue="billing")'
        )
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise ConfigError(
            f"task {task}: a generator has no single result; return a value instead of yielding"
        )


def _check_no_method(handler: Callable[..., Any], parameters: Mapping[str, Any], task: str) -> None:
    """A function in the body of a class would wait for a `self` that no job has."""
    place = getattr(handler, "__qualname__", "").split(".")[:-1]
    if next(iter(parameters), None) in ("self", "cls") and place and place[-1] != "<locals>":
        raise ConfigError(
            f"task {task}: @app.task is on a method, and a worker has no object to call it on. Put it on a "
            "function of the module, or register a bound method: app.task(thing.method)"
        )


def _takes_job(parameters: Mapping[str, inspect.Parameter], task: str) -> bool:
    for place, (name, parameter) in enumerate(parameters.items()):
        if _is_job(parameter.annotation):
            if place > 0 or parameter.kind not in _BY_POSITION:
                raise ConfigError(f"task {task}: `{name}: Job` must be the first parameter")
            return True
        if place == 0 and name == "job" and parameter.annotation is Any:
            raise ConfigError(
                f"task {task}: the first parameter is called job but says no type. Annotate it `job: Job` "
                "to be given the running job, or give the argument another name"
            )
    return False


_BY_POSITION: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _is_job(hint: Any) -> bool:
    return hint is Job or (get_origin(hint) is Annotated and get_args(hint)[0] is Job)


class Registry:
    """The tasks of one app by name. It never imports anything by name: an unknown task does not run.

    >>> registry = Registry()
    >>> def charge(order_id: int) -> None: ...
    >>> registry.add(spec_of(charge)).name
    'charge'
    >>> "os.system" in registry
    False
    """

    def __init__(self) -> None:
        self._specs: dict[str, TaskSpec] = {}
        self.limits: dict[str, Limit] = {}
        """The limits of the app that have names, besides those of its tasks."""
        self.schedules: dict[str, ScheduleSpec] = {}
        self.app_name: str | None = None
        self.release: str | int | None = None
        self.extensions = AppExtensions()

    def add(self, spec: TaskSpec) -> TaskSpec:
        """Register a task; two of one name are refused, since jobs could not tell them apart."""
        if spec.name in self._specs:
            first = self._specs[spec.name].handler
            raise ConfigError(
                f"two tasks are called {spec.name}: {_place(first)} and {_place(spec.handler)}. "
                "Give one of them another name: @app.task(name=...)"
            )
        self._specs[spec.name] = spec
        return spec

    def add_limit(self, limit: Limit) -> Limit:
        """Register a limit by its name, for tasks that name it, or name it as a parent."""
        if limit.name is None:
            raise ConfigError('a limit of an app has a name: app.limit(Limit(name="billing", total=100))')
        if self.limits.get(limit.name, limit) != limit:
            raise ConfigError(f"two limits are called {limit.name}, with different bounds")
        self.limits[limit.name] = limit
        return limit

    def add_schedule(self, spec: "ScheduleSpec") -> None:
        """Register a schedule; two of one name are refused."""
        if spec.name in self.schedules:
            raise ConfigError(
                f"two schedules are called {spec.name}. Give one of them another name: "
                "@app.schedule(..., name=...)"
            )
        self.schedules[spec.name] = spec

    def find(self, name: str) -> TaskSpec:
        """The task of this name, or UnknownTask."""
        try:
            return self._specs[name]
        except KeyError:
            raise UnknownTask(f"no task is called {name[:140]!a} here; {self._known(name)}") from None

    def check_injections(self) -> None:
        """ConfigError where a handler asks for what is not registered; checked when a worker starts."""
        for spec in self:
            spec.extensions.check(spec.name, spec.is_async, spec.injection)
            for argument in spec.codec.arguments:
                if argument.hint in spec.extensions.resources:
                    raise ConfigError(
                        f"task {spec.name}: argument {argument.name} has the type of a resource that was "
                        "registered after the task. Register the resource first, or give the parameter the "
                        "default `injected`"
                    )

    def get(self, name: str) -> TaskSpec | None:
        """The task of this name, or None."""
        return self._specs.get(name)

    def _known(self, name: str) -> str:
        close = " or ".join(close_to(name, self._specs))
        names = ", ".join(sorted(self._specs)[:10]) or "none at all"
        hint = f"did you mean {close}?" if close else f"this app knows {names}."
        return f"{hint} Import the module that defines the task, or correct the name"

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    def __iter__(self) -> Iterator[TaskSpec]:
        return iter(self._specs.values())

    def __len__(self) -> int:
        return len(self._specs)


def _place(handler: Callable[..., Any]) -> str:
    return f"{getattr(handler, '__module__', '?')}.{getattr(handler, '__qualname__', type(handler).__name__)}"
