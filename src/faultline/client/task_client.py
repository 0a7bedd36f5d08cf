"""A task as producers see it: enqueue jobs of it, now, later, or in your own transaction."""

import functools
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar

from faultline import bounds
from faultline.args import ResultReader
from faultline.client import send_in
from faultline.client.app_stores import refuse_in_a_loop
from faultline.client.handle import Handle
from faultline.client.sender import Sender
from faultline.connections import AwaitedConnection, PlainConnection
from faultline.errors import InputError
from faultline.job import NewJob
from faultline.retry import Constant, Exponential, to_json
from faultline.store.rows import MadeJob
from faultline.task import TaskSpec
from faultline.text.suggest import naming_options
from faultline.unique import Unique, key_maker

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS_ELSEWHERE: Final = {
    "eta": "run_at", "countdown": "delay", "retries": "max_attempts", "max_retries": "max_attempts",
    "lease_for": "lease", "retry_policy": "retry", "time_limit": "timeout", "unique_by": "unique",
    "expires": "expires_in", "ttl": "expires_in",
}  # fmt: skip
"""The names of these in other libraries, or in `@app.task`."""


class Task(Generic[P, R]):
    """A kind of work, made by `@app.task`; calling it still calls the plain function.

    >>> from faultline import Faultline
    >>> app = Faultline("dbname=shop")
    >>> @app.task(queue="billing")
    ... def charge(order_id: int, note: str = "") -> str:
    ...     return f"charged {order_id}"
    >>> charge(7)
    'charged 7'
    >>> charge.using(priority=-5, key="order-7").new(order_id=7).args
    '{"order_id":7}'
    """

    def __init__(self, spec: TaskSpec, sender: Sender, options: Mapping[str, Any] | None = None) -> None:
        functools.update_wrapper(self, spec.handler)
        self.spec = spec
        self._sender = sender
        self._reader = ResultReader(spec.handler if spec.batch is None else _of_any_type)
        self._around = spec.extensions.middleware.of_enqueues
        self._options = dict(options if options is not None else _defaults(spec))
        self._key_of = None if spec.unique is None else _key_maker(spec, spec.unique)

    @property
    def name(self) -> str:
        """The name jobs of this task carry."""
        return self.spec.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the handler here and now; no job is made."""
        return self.spec.handler(*args, **kwargs)

    def new(self, /, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """A job of this task, checked but not sent: for `enqueue_many`.

        app.enqueue_many(charge.new(order_id=n) for n in orders)
        """
        encoded = self.spec.codec.encode(args, kwargs)
        if self._key_of is None:
            new = NewJob(task=self.spec.name, args=encoded, **self._options)
        else:
            options = {**self._options, "key": self._key_of(encoded)}
            new = NewJob(task=self.spec.name, args=encoded, **options)
        return self.spec.extensions.middleware.enqueued(new) if self._around else new

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put a job in its queue. When this returns, the job is durable.

        handle = charge.enqueue(order_id=7)
        """
        refuse_in_a_loop("enqueue")
        return self._handle(self._sender.enqueue(self.new(*args, **kwargs)))

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put a job in its queue. When this returns, the job is durable.

        handle = await charge.aenqueue(order_id=7)
        """
        return self._handle(await self._sender.aenqueue(self.new(*args, **kwargs)))

    def enqueue_in(self, conn: PlainConnection, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put a job in its queue in your own transaction: it exists when you commit, and never if you do not.

            with psycopg.connect(dsn) as conn:
                conn.execute("insert into orders (id) values (7)")
                charge.enqueue_in(conn, order_id=7)

        The connection is one of psycopg, a connection or session of SQLAlchemy, or `django.db.connection`.
        Sessions and Django tell of the commit, and workers are woken after it. Other connections do not: a
        worker's poll finds the job within a quarter of a second, or call `app.wake(queue)` after the commit.
        """
        refuse_in_a_loop("enqueue_in")
        return self._handle(send_in.enqueue_in(self._sender, conn, self.new(*args, **kwargs)))

    async def aenqueue_in(self, conn: AwaitedConnection, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put a job in its queue in your own transaction; as `enqueue_in`, on an async connection.

        One of psycopg, asyncpg or SQLAlchemy.
        """
        return self._handle(await send_in.aenqueue_in(self._sender, conn, self.new(*args, **kwargs)))

    def enqueue_many_in(self, conn: PlainConnection, jobs: Iterable[NewJob], /) -> list[int]:
        """Put many jobs in their queues in your own transaction; gives their ids in the same order.

        charge.enqueue_many_in(conn, (charge.new(order_id=n) for n in orders))
        """
        refuse_in_a_loop("enqueue_many_in")
        return send_in.enqueue_many_in(self._sender, conn, jobs)

    async def aenqueue_many_in(self, conn: AwaitedConnection, jobs: Iterable[NewJob], /) -> list[int]:
        """Put many jobs in their queues in your own transaction; gives their ids in the same order."""
        return await send_in.aenqueue_many_in(self._sender, conn, jobs)

    def enqueue_many(self, jobs: Iterable[NewJob]) -> list[int]:
        """Put many jobs in their queues, all of them or none; gives their ids in the same order.

        charge.enqueue_many(charge.new(order_id=n) for n in orders)
        """
        return self._sender.enqueue_many(jobs)

    async def aenqueue_many(self, jobs: Iterable[NewJob]) -> list[int]:
        """Put many jobs in their queues, all of them or none; gives their ids in the same order."""
        return await self._sender.aenqueue_many(jobs)

    def handle(self, job_id: int) -> Handle[R]:
        """A handle on a job of this task whose id you kept."""
        return Handle(job_id, self._sender, self._reader)

    def _handle(self, made: MadeJob) -> Handle[R]:
        return Handle(made.id, self._sender, self._reader, made.is_new)

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        max_attempts: int | None = None,
        retry: Exponential | Constant | None = None,
        timeout: timedelta | None = None,
        lease: timedelta | None = None,
        key: str | None = None,
        key_for: timedelta | None = None,
        unique: Unique | None = None,
        expires_at: datetime | None = None,
        expires_in: timedelta | None = None,
        limit: str | None = None,
        limit_key: str | None = None,
    ) -> "Task[P, R]":
        """The same task with other options; what is not named stays as it was.

            charge.using(key="order-7", run_at=tomorrow).enqueue(order_id=7)

        `key` makes two enqueues the same job, for `key_for` after the job ended (a day by default). `unique`
        has other rules for the same, and a key made of the arguments where none is given:

            sync.using(unique=Unique.while_queued(by=["tenant"])).enqueue(tenant=7)

        A job that no worker has claimed by `expires_at`, or within `expires_in`, ends as cancelled.
        `limit` names a limit in place of the task's, `limit_key` the key that it counts by.
        """
        _check_unique(unique, key, key_for, run_at or delay)
        _check_moments(run_at, delay, expires_at, expires_in)
        changes: dict[str, Any] = {
            "queue": queue if queue is None else bounds.check_queue_name(queue),
            "priority": priority if priority is None else bounds.check_priority(priority),
            "run_at": run_at if run_at is None else bounds.check_run_at(run_at),
            "delay": delay if delay is None else bounds.check_delay(delay),
            "max_attempts": max_attempts if max_attempts is None else bounds.check_max_attempts(max_attempts),
            "retry": retry if retry is None else to_json(retry),
            "timeout": timeout if timeout is None else bounds.check_timeout(timeout),
            "lease_for": lease if lease is None else bounds.check_lease_for(lease),
            "key": key if key is None else bounds.check_key(key),
            "expires_at": expires_at if expires_at is None else bounds.check_run_at(expires_at, "expires_at"),
            "expires_in": expires_in if expires_in is None else bounds.check_expires_in(expires_in),
            "key_for": key_for if key_for is None else bounds.check_delay(key_for, "key_for"),
            "limit": limit if limit is None else bounds.check_limit_name(limit),
            "limit_key": limit_key if limit_key is None else bounds.check_key(limit_key),
        }
        kept = dict(self._options)
        if run_at is not None or delay is not None:  # a new time replaces the old one, in either form
            kept.update(run_at=None, delay=None)
        if expires_at is not None or expires_in is not None:
            kept.update(expires_at=None, expires_in=None)
        kept.update((name, value) for name, value in changes.items() if value is not None)
        return self._with(kept, unique, None if key is not None else self._key_of)

    def _with(
        self, options: dict[str, Any], unique: Unique | None, key_of: Callable[[str], str] | None
    ) -> "Task[P, R]":
        if unique is not None:
            if options.get("key_rule") == "debounce":
                options.update(delay=None)  # it was the wait of that rule
            key_of = _key_maker(self.spec, unique) if options.get("key") is None else None
            options.update(unique.options())
        # Copied and not made: this runs for each job, and updating the wrapper takes half of its time.
        other: Task[P, R] = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _options=options, _key_of=key_of)
        return other

    def __repr__(self) -> str:
        return f"Task({self.spec.name!r})"

    if not TYPE_CHECKING:  # a type checker sees the signatures, and no missing attribute
        using = naming_options("using", InputError, _OPTIONS_ELSEWHERE)(using)

        def __getattr__(self, name: str) -> Any:
            """For missing attributes alone: the name here of a method of other libraries."""
            meant = _ELSEWHERE.get(name)
            hint = f"; it is called {meant} here" if meant else ""
            raise AttributeError(f"a Task has no {name!r}{hint}", name=name, obj=self)


_ELSEWHERE: Final = {
    "delay": "enqueue(...), and later than now using(delay=...).enqueue(...)",
    "apply_async": "using(...).enqueue(...)",
    "s": "new(...)",
    "send": "enqueue(...)",
    "send_with_options": "using(...).enqueue(...)",
    "defer": "enqueue(...)",
    "defer_async": "aenqueue(...)",
    "configure": "using(...)",
    "options": "using(...)",
    "kiq": "aenqueue(...)",
}


def _of_any_type() -> Any:
    """In place of a batch handler, which returns nothing or a mapping: a job's result is of any type."""


def _key_maker(spec: TaskSpec, unique: Unique) -> Callable[[str], str]:
    return key_maker(spec.name, spec.parameters, unique)


def _check_moments(
    run_at: datetime | None,
    delay: timedelta | None,
    expires_at: datetime | None,
    expires_in: timedelta | None,
) -> None:
    if run_at is not None and delay is not None:
        raise InputError("run_at and delay both say when the job is due; give one of them")
    if expires_at is not None and expires_in is not None:
        raise InputError("expires_at and expires_in both say when the job expires; give one of them")


def _check_unique(
    unique: Unique | None, key: str | None, key_for: timedelta | None, due: datetime | timedelta | None
) -> None:
    if unique is None:
        return
    if not isinstance(unique, Unique):
        raise InputError(f"unique is a Unique, such as Unique.while_queued(); got {unique!r:.60}")
    if key is not None and unique.by is not None:
        raise InputError("key and unique's `by` both say what the key is; give one of them")
    if key_for is not None:
        raise InputError("unique says how long its key is kept; leave key_for out")
    if unique.delay is not None and due is not None:
        raise InputError("Unique.debounce says when the job is due; leave run_at and delay out")


def _defaults(spec: TaskSpec) -> dict[str, Any]:
    return {
        **({} if spec.unique is None else spec.unique.options()),
        "queue": spec.queue,
        "priority": spec.priority,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "lease_for": spec.lease_for,
        **({} if spec.expires_in is None else {"expires_in": spec.expires_in}),
    }
