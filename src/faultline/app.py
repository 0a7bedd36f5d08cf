"""Faultline: one app, its tasks, and its jobs."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, overload

from faultline.bounds import check_age_after, check_job_id, check_max_depth, check_queue_name
from faultline.client import send_in
from faultline.client.app_stores import AppStores, refuse_in_a_loop
from faultline.client.handle import found
from faultline.client.sender import Sender
from faultline.client.task_decorator import TaskDecorator
from faultline.config import Settings, check_dsn, redact
from faultline.connections import AwaitedConnection, PlainConnection
from faultline.errors import ConfigError, InputError, OutOfBounds
from faultline.extensions import Transactions
from faultline.extensions.hooks import NONE_GIVEN, H
from faultline.extensions.middleware import EnqueueMiddleware, M
from faultline.extensions.resources import Scope
from faultline.job import JobInfo, JobState, NewJob, read_state
from faultline.limit import Limit
from faultline.schedules.schedule_spec import Missed, Overlap, check_app_name, release_numbers
from faultline.store import calls, limit_sync
from faultline.store.call import Call
from faultline.task import Registry
from faultline.text.suggest import naming_options

if TYPE_CHECKING:
    from faultline.client import Task
    from faultline.client.schedule_decorator import When
    from faultline.client.schedules import Schedules
    from faultline.worker.options import RunOptions

LIST_MAX: Final = 1_000

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound="Task[..., Any]")


class Faultline:
    """An app: define tasks on it, enqueue their jobs, look at them. Opens no connection until it must.

    Without a DSN it uses FAULTLINE_DSN, read when the first connection is made. Every method that goes
    to the database has an async twin with an `a` before its name.

    >>> app = Faultline("postgresql://app:secret@db/shop")
    >>> app
    Faultline('postgresql://app@db/shop')
    >>> @app.task(queue="billing", max_attempts=5)
    ... async def charge(order_id: int) -> None: ...
    >>> charge.name in app.registry
    True
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        pooler: str | None = None,
        name: str | None = None,
        release: str | int | None = None,
    ) -> None:
        """An app; `name` and `release` are for its schedules, where apps or releases share a database.

        A worker of a lower release changes no schedule, and those that the newest release does not have are
        paused. A release has numbers, as 1.10.2; FAULTLINE_RELEASE says it where the code does not.
        """
        check_dsn(dsn)
        if name is not None:
            check_app_name(name)
        if release is not None:
            release_numbers(release)
        self._dsn = dsn
        self._pooler = pooler
        self.registry = Registry()
        self.registry.app_name = name
        self.registry.release = release
        self._stores = AppStores(lambda: self.settings)
        self._sender = Sender(self._stores)

    @property
    def settings(self) -> Settings:
        """The address of the database and its settings: arguments first, then the environment."""
        return Settings.read(dsn=self._dsn, pooler=self._pooler)

    def connect_to(self, dsn: str) -> None:
        """Use this database; for programs that learn it after the app was made, as `faultline dev` does.

        >>> app = Faultline()
        >>> app.connect_to("dbname=shop")
        >>> app
        Faultline('dbname=shop')
        """
        if self._stores.in_use:
            raise ConfigError("this app already works with a database; close it before connecting to another")
        check_dsn(dsn)
        self._dsn = dsn

    @property
    def task(self) -> TaskDecorator:
        """Make a task of a function: `@app.task`, or `@app.task(queue=..., max_attempts=...)`.

        The function may be sync or async, and may take `job: Job` as its first parameter. Options: name,
        queue, priority, max_attempts, retry, timeout, lease_for, run, forbid_unknown, limit, unique,
        expires_in, batch; `run="process"` is for handlers that compute for long, and may have to be killed.

        >>> app = Faultline("dbname=shop")
        >>> @app.task
        ... def greet(name: str) -> str: return f"hello {name}"
        >>> greet.new("Ada").args
        '{"name":"Ada"}'
        """
        return TaskDecorator(self.registry, self._sender)

    def limit(self, limit: Limit) -> Limit:
        """Register a limit by its name: tasks share it, or name it as the parent of their own.

        >>> from faultline import Limit
        >>> app = Faultline("dbname=shop")
        >>> billing = app.limit(Limit(name="billing", total=100))
        >>> @app.task(queue="billing", limit=Limit(per_key=5, key="tenant", parent="billing"))
        ... def charge(tenant: str, order_id: int) -> None: ...
        """
        return self.registry.add_limit(limit)

    def declare_limits(self) -> int:
        """Tell the database the limits of this app, as each worker does at its start.

        Gives how many jobs came under a new limit.

        app.declare_limits()
        """
        refuse_in_a_loop("declare_limits")
        return limit_sync.carry(
            limit_sync.declare(self.registry), lambda call: self._sender.run(call, "declare_limits")
        )

    async def adeclare_limits(self) -> int:
        """Tell the database the limits of this app, as each worker does at its start."""
        return await limit_sync.acarry(limit_sync.declare(self.registry), self._sender.arun)

    def schedule(
        self,
        when: "When",
        /,
        *,
        tz: str | None = None,
        name: str | None = None,
        args: Mapping[str, Any] | None = None,
        missed: Missed = "once",
        overlap: Overlap = "allow",
        jitter: timedelta = timedelta(0),
    ) -> Callable[[S], S]:
        """Enqueue a task by a cron expression, `every(minutes=5)`, or `at(moment)`; above `@app.task`.

        A task may have several, each with a name; the first is called as the task. `missed` says what happens
        to times at which no watchdog ran: skip, once (the default) or all; `overlap`, while the job before
        has not ended: allow, skip or cancel it. `jitter` puts each job off by a random time below it.

        >>> app = Faultline("dbname=shop")
        >>> @app.schedule("0 3 * * *", tz="Europe/Berlin")
        ... @app.task
        ... def clean_up(days: int = 30) -> None: ...
        >>> app.registry.schedules["clean_up"].timing.explain()
        'At 03:00 every day'
        """
        from faultline.client.schedule_decorator import scheduled

        options = {
            "tz": tz, "name": name, "args": args, "missed": missed, "overlap": overlap, "jitter": jitter,
        }  # fmt: skip
        return scheduled(self.registry, when, options)

    @property
    def schedules(self) -> "Schedules":
        """The schedules of the database: list, get, set, pause, resume, trigger, backfill, next, history.

        app.schedules.pause("nightly")
        """
        from faultline.client.schedules import Schedules

        return Schedules(self._sender)

    @property
    def transactions(self) -> Transactions:
        """The kinds of transaction that handlers may ask for, beside `Transaction` and `SyncTransaction`.

        app.transactions.register(AsyncSession, async_sessionmaker(engine))
        """
        return self.registry.extensions.transactions

    @overload
    def resource(self, function: F, /, *, scope: Scope = "process") -> F: ...
    @overload
    def resource(self, function: None = None, /, *, scope: Scope = "process") -> Callable[[F], F]: ...

    def resource(self, function: Any = None, /, *, scope: Scope = "process") -> Any:
        """Make a resource of a generator: handlers that ask for the type that it yields are given it.

        It is opened when a job first needs it, once a process, and closed when the worker ends; with
        `scope="job"` once for each job. Async ones are for async handlers, plain ones for plain handlers.

        >>> from collections.abc import Iterator
        >>> from faultline import injected
        >>> class Client: ...
        >>> app = Faultline("dbname=shop")
        >>> @app.resource
        ... def client() -> Iterator[Client]:
        ...     yield Client()
        >>> @app.task
        ... def greet(name: str, client: Client = injected) -> None: ...
        >>> greet.new("Ada").args
        '{"name":"Ada"}'
        """
        add = self.registry.extensions.resources.add
        if function is not None:
            add(function, scope)
            return function

        def register(function: F) -> F:
            add(function, scope)
            return function

        return register

    def middleware(self, function: M) -> M:
        """Put a function around every run of a handler; the first registered is the outermost.

        An async function is put around async handlers, a plain one around plain handlers:

            @app.middleware
            async def timed(job: Job, call: Call) -> Any:
                began = time.monotonic()
                try:
                    return await call()
                finally:
                    log.info("%s took %.3f s", job.task, time.monotonic() - began)
        """
        return self.registry.extensions.middleware.add(function)

    def enqueue_middleware(self, function: EnqueueMiddleware) -> EnqueueMiddleware:
        """Have each new job pass through a function, which may replace it, in the order of registering.

        @app.enqueue_middleware
        def later(new: NewJob) -> NewJob:
            return msgspec.structs.replace(new, priority=5)
        """
        return self.registry.extensions.middleware.add_to_enqueues(function)

    def on_startup(self, hook: H = NONE_GIVEN) -> H:
        """Call a function, sync or async, when a worker starts, and in each of its child processes.

        One that raises keeps the worker from starting.
        """
        return self.registry.extensions.hooks.add("startup")(hook)

    def on_shutdown(self, hook: H = NONE_GIVEN) -> H:
        """Call a function when a worker has ended its jobs and closed its resources; errors are logged."""
        return self.registry.extensions.hooks.add("shutdown")(hook)

    def on_failed(self, hook: H = NONE_GIVEN) -> H:
        """Call a function with a JobEvent after an attempt was recorded as failed, the last one included.

        Hooks on outcomes run in the worker that had the job, beside its work, for ten seconds at most; what
        they raise is logged.
        """
        return self.registry.extensions.hooks.add("failed")(hook)

    def on_dead(self, hook: H = NONE_GIVEN) -> H:
        """Call a function with a JobEvent after a job was recorded as dead by its worker."""
        return self.registry.extensions.hooks.add("dead")(hook)

    def on_lost(self, hook: H = NONE_GIVEN) -> H:
        """Call a function with a JobEvent after a worker learnt that a lease of its own is lost."""
        return self.registry.extensions.hooks.add("lost")(hook)

    def enqueue_many(self, jobs: Iterable[NewJob]) -> list[int]:
        """Put many jobs, of any tasks, in their queues in one transaction; gives their ids in order.

        app.enqueue_many(charge.new(order_id=n) for n in orders)
        """
        return self._sender.enqueue_many(jobs)

    async def aenqueue_many(self, jobs: Iterable[NewJob]) -> list[int]:
        """Put many jobs, of any tasks, in their queues in one transaction; gives their ids in order."""
        return await self._sender.aenqueue_many(jobs)

    def enqueue_many_in(self, conn: PlainConnection, jobs: Iterable[NewJob], /) -> list[int]:
        """Put many jobs, of any tasks, in their queues in your own transaction; gives their ids in order.

        app.enqueue_many_in(conn, (charge.new(order_id=n) for n in orders))
        """
        refuse_in_a_loop("enqueue_many_in")
        return send_in.enqueue_many_in(self._sender, conn, jobs)

    async def aenqueue_many_in(self, conn: AwaitedConnection, jobs: Iterable[NewJob], /) -> list[int]:
        """Put many jobs, of any tasks, in their queues in your own transaction; gives their ids in order."""
        return await send_in.aenqueue_many_in(self._sender, conn, jobs)

    def get(self, job_id: int) -> JobInfo:
        """The job of this id as it stands now, or JobNotFound.

        app.get(7).state
        """
        return found(self._sender.run(calls.get(check_job_id(job_id)), "get"), job_id)

    async def aget(self, job_id: int) -> JobInfo:
        """The job of this id as it stands now, or JobNotFound."""
        return found(await self._sender.arun(calls.get(check_job_id(job_id))), job_id)

    def jobs(
        self,
        *,
        state: JobState | str | None = None,
        queue: str | None = None,
        task: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[JobInfo]:
        """The jobs that fit, newest first; give the last id seen as `before` for the next page.

        app.jobs(state="dead", queue="billing")
        """
        return self._sender.run(_listing(state, queue, task, before, limit), "jobs")

    async def ajobs(
        self,
        *,
        state: JobState | str | None = None,
        queue: str | None = None,
        task: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[JobInfo]:
        """The jobs that fit, newest first; give the last id seen as `before` for the next page."""
        return await self._sender.arun(_listing(state, queue, task, before, limit))

    def cancel(self, job_id: int, reason: str = "") -> None:
        """End a job for good; a running one is stopped, and nothing it does can commit any more.

        app.cancel(7, "the order was withdrawn")
        """
        self._sender.run(
            calls.cancel(check_job_id(job_id), reason or None), "cancel", calls.wake_cancelled([job_id])
        )

    async def acancel(self, job_id: int, reason: str = "") -> None:
        """End a job for good; a running one is stopped, and nothing it does can commit any more."""
        await self._sender.arun(
            calls.cancel(check_job_id(job_id), reason or None), calls.wake_cancelled([job_id])
        )

    def retry_now(self, job_id: int) -> None:
        """Do not wait for a job's `run_at`: make it due.

        app.retry_now(7)
        """
        self._sender.hint(self._sender.run(calls.retry_now(check_job_id(job_id)), "retry_now"))

    async def aretry_now(self, job_id: int) -> None:
        """Do not wait for a job's `run_at`: make it due."""
        await self._sender.ahint(await self._sender.arun(calls.retry_now(check_job_id(job_id))))

    def replay(self, job_id: int) -> None:
        """Give a dead job all its attempts again.

        app.replay(7)
        """
        self._sender.hint(self._sender.run(calls.replay(check_job_id(job_id)), "replay"))

    async def areplay(self, job_id: int) -> None:
        """Give a dead job all its attempts again."""
        await self._sender.ahint(await self._sender.arun(calls.replay(check_job_id(job_id))))

    def wake(self, queue: str = "default") -> None:
        """Tell idle workers that a queue may have work; after the commit of a transaction that enqueued.

        app.wake("billing")
        """
        self._sender.run(calls.wake(check_queue_name(queue)), "wake")

    async def awake(self, queue: str = "default") -> None:
        """Tell idle workers that a queue may have work; after the commit of a transaction that enqueued."""
        await self._sender.arun(calls.wake(check_queue_name(queue)))

    def configure_queue(
        self, queue: str, *, max_depth: int | None = None, age_after: timedelta | None = None
    ) -> None:
        """Set how many due jobs a queue may hold, and by which age its jobs move ahead by one priority.

        None leaves a value as it is, zero takes it away. An enqueue in a full queue raises QueueFull; the
        bound is soft, for a watchdog counts once a second. Retries and replays are never refused.

        app.configure_queue("mail", max_depth=10_000, age_after=timedelta(minutes=10))
        """
        self._sender.run(_queue_bounds(queue, max_depth, age_after), "configure_queue")

    async def aconfigure_queue(
        self, queue: str, *, max_depth: int | None = None, age_after: timedelta | None = None
    ) -> None:
        """Set how many due jobs a queue may hold, and by which age its jobs move ahead by one priority."""
        await self._sender.arun(_queue_bounds(queue, max_depth, age_after))

    def run_worker(self, **options: Unpack["RunOptions"]) -> int:
        """Run a worker, as `faultline worker` does, until SIGTERM or Ctrl-C; gives its exit code.

        Options: queues, concurrency, threads, children, lease, grace, name, until_empty, stop_after, server;
        or config=WorkerConfig(...) for all settings. In the main thread only, since it handles signals. It
        ends the process where an async handler goes on though it was cancelled.

        sys.exit(app.run_worker(queues="billing=5,mail", concurrency=20))
        """
        from faultline.runtime.run_worker import run_to_the_end  # a producer need not load the worker

        refuse_in_a_loop("run_worker")
        return run_to_the_end(self.registry, self.settings, options)

    async def arun_worker(self, **options: Unpack["RunOptions"]) -> int:
        """Run a worker in this event loop, with the same options; it leaves signals to the program.

        A cancellation stops it as SIGTERM does: jobs finish within the grace, and then CancelledError is
        raised. A second cancellation gives them back at once.

        working = asyncio.create_task(app.arun_worker(concurrency=20))
        """
        from faultline.runtime.run_worker import run_in_loop

        return await run_in_loop(self.registry, self.settings, options)

    def worker(self, **options: Unpack["RunOptions"]) -> AbstractAsyncContextManager[None]:
        """Run a worker in this event loop for as long as a block lasts, beside a web server for example.

            async with app.worker(concurrency=5):
                ...

        The block begins once the worker is ready. At its end running jobs finish within the grace. A worker
        that cannot start, or ends by an error, raises it in the block. Options as of `run_worker`.
        """
        from faultline.runtime.run_worker import run_in_loop
        from faultline.runtime.worker_block import WorkerBlock

        return WorkerBlock(
            lambda on_ready: run_in_loop(self.registry, self.settings, options, on_ready=on_ready)
        )

    def close(self) -> None:
        """Close the connections of plain code; the app opens new ones if it is used again.

        Calls that other threads have under way are finished first.
        """
        self._sender.drain()
        self._stores.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop, and those of plain code."""
        await self._sender.settle_down()
        await self._stores.aclose()

    def __enter__(self) -> "Faultline":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> "Faultline":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        try:
            dsn = self.settings.dsn
        except ConfigError:  # a wrong setting in the environment must not break the repr
            dsn = self._dsn
        return f"Faultline({redact(dsn)!r})" if dsn else "Faultline()"

    if not TYPE_CHECKING:  # a type checker is to see the signatures as they are
        __init__ = naming_options("Faultline", ConfigError)(__init__)
        schedule = naming_options(
            "schedule", InputError, {"timezone": "tz", "time_zone": "tz", "kwargs": "args"}
        )(schedule)
        jobs = naming_options("jobs", InputError)(jobs)
        ajobs = naming_options("ajobs", InputError)(ajobs)


def _queue_bounds(queue: str, max_depth: int | None, age_after: timedelta | None) -> Call[None]:
    if max_depth is None and age_after is None:
        raise InputError("name what to set of the queue: max_depth or age_after")
    return calls.configure_queue(
        check_queue_name(queue),
        None if max_depth is None else check_max_depth(max_depth),
        None if age_after is None else check_age_after(age_after),
    )


def _listing(
    state: JobState | str | None, queue: str | None, task: str | None, before: int | None, limit: int
) -> Call[list[JobInfo]]:
    if not 1 <= limit <= LIST_MAX:
        raise OutOfBounds(f"limit goes from 1 to {LIST_MAX} jobs a page; got {limit}")
    return calls.list_jobs(None if state is None else read_state(state), queue, task, before, limit)
