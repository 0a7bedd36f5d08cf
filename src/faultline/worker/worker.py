"""The worker: claim, run, settle; and leave in good order."""

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from faultline import failpoints
from faultline.bounds import counted
from faultline.config import Settings, WorkerConfig
from faultline.errors import LeaseLost
from faultline.store.driver.listen import Wakes
from faultline.store.driver.notifications import cancelled_in
from faultline.task import Registry
from faultline.telemetry import emit, install_context
from faultline.text.durations import format_duration
from faultline.worker.attempt import Attempt, StopReason
from faultline.worker.backend import Backend
from faultline.worker.claiming.claimer import Claimer
from faultline.worker.claiming.job_intake import JobIntake
from faultline.worker.claiming.known_tasks import KnownTasks
from faultline.worker.claiming.unserved_tasks import check_needs
from faultline.worker.execution.cancellations import Cancellations
from faultline.worker.execution.deadlines import DeadlineMonitor
from faultline.worker.execution.executor import Executor
from faultline.worker.execution.loop_stalls import LoopStalls
from faultline.worker.execution.outcomes import STOPPING, given_back
from faultline.worker.handlers import life
from faultline.worker.handlers.handler_calls import HandlerCalls
from faultline.worker.handlers.injected_transactions import InjectedTransactions
from faultline.worker.handlers.outcome_hooks import LEAVE_MAX, OutcomeHooks
from faultline.worker.heartbeat.heartbeat_watch import HeartbeatWatch
from faultline.worker.heartbeat.pacemaker_process import PacemakerProcess
from faultline.worker.outage import Outage
from faultline.worker.postgres_backend import PostgresBackend
from faultline.worker.processes.child_pool import ChildPool
from faultline.worker.processes.import_path import ImportPath, import_paths_of, refuse_a_worker_in_a_child
from faultline.worker.processes.suspects import Suspects
from faultline.worker.reporter import Reporter
from faultline.worker.schedule_sync import ScheduleSync
from faultline.worker.settlement.settler import Settler
from faultline.worker.state import WorkerState
from faultline.worker.transactions.attempt_context import AttemptContext
from faultline.worker.transactions.transaction import ask_rows

log = logging.getLogger("faultline.worker")

SETTLE_WAIT = 5.0
"""How long a leaving worker insists on recording what it has, when the database is away."""

PARTS_WAIT = 2.0
"""How long a leaving worker waits for its own parts, and for handlers that will not be cancelled."""

LET_GO_WAIT = 3.0
"""How long it then tries to give back what it could not record."""

EXIT_UNSETTLED = 1
EXIT_FAILED = 1
EXIT_STUCK = 3


class Worker:
    """Runs the jobs of one app.

    Its backend is the database, or a server that stands before it. Connections to a database: three of the
    backend, one of the pacemaker, and one for each job.complete.
    """

    def __init__(
        self,
        tasks: Registry,
        settings: Settings,
        config: WorkerConfig,
        name: str | None = None,
        wakes: Wakes | None = None,
        backend: Backend | None = None,
    ) -> None:
        self.backend = backend or PostgresBackend(settings)
        if settings.dsn is None:
            check_needs(tasks, config.queues)
        self.tasks = tasks
        self._known_tasks = KnownTasks(tasks, self.backend)
        self._schedule_sync = ScheduleSync(tasks, self.backend)
        tasks.check_injections()
        for gap in tasks.extensions.middleware.gaps([(spec.name, spec.is_async) for spec in tasks]):
            log.warning("%s", gap)
        self.places = import_paths_of(tasks)
        self.settings = settings
        self.config = config
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.id = 0
        self.exit_code = 0
        self.stuck = 0
        """Async handlers that would not be cancelled: only the end of the process ends them."""
        self.ready = asyncio.Event()
        self.claimed = asyncio.Event()
        """The first claim was answered, with jobs or without: from here on it works."""
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._wakes = wakes or self.backend.listen

    def stop(self) -> None:
        """Stop claiming and finish what runs; said twice, give it back at once."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    @property
    def stopping(self) -> asyncio.Event:
        """Set when it was told to stop."""
        return self._stop

    def status(self) -> str:
        """One line for the status of the process."""
        return f"{self._state.held_count} jobs in hand, {self._state.settled_count} settled"

    async def run(self, *, until_empty: bool = False, stop_after: int | None = None) -> int:
        """Work until told to stop, until the queues are empty, or for so many jobs; answers the exit code."""
        refuse_a_worker_in_a_child()
        failpoints.arm_from_environment()
        self.backend.open(self.config)
        outage = Outage(self.config.lease_for.total_seconds(), self.backend.peer_name)
        try:
            await self.backend.check_server()
            names = self._known_tasks.names()
            self.id = await outage.outlast(lambda: self.backend.register(self.name, names))
            # Before the first claim: what it moves to a gate must not be claimed past it.
            if moved := await outage.outlast(lambda: self.backend.declare_limits(self.tasks)):
                log.info("%s came under limits of this app", counted(moved, "job"))
            await outage.outlast(self._schedule_sync.sync)
        except BaseException:
            await self.backend.close()
            raise
        undo_context = install_context()
        speak_again = _hush_pools()
        self._state = WorkerState(self.config)
        self._state.left = stop_after
        self._pools = self.backend.transaction_pools(
            self._state.lease_table, self.config, asyncio.get_running_loop()
        )
        self._handler_calls = HandlerCalls(InjectedTransactions(self.settings.dsn))
        self._children = self._make_children(self.places, self.config.children_max)
        self._suspects = Suspects(self._make_children({}, self.config.suspects_max))
        pacemaker_process = PacemakerProcess(self._state, self.backend.pacemaker(), self.id)
        try:
            await pacemaker_process.start()
            settler = Settler(self._state, self.backend, outage, self.id)
            await asyncio.gather(pacemaker_process.wait_ready(), self.backend.warm_up())
            context = AttemptContext(lambda: self._pools)
            intake = JobIntake(self._state, self.tasks, pacemaker_process, self.id, context)
            self._claimer = claimer = Claimer(self._state, self.backend, intake, outage)
            claimer.claimed = self.claimed
            emit(
                "worker_start", worker=self.id, name=self.name, queues=list(self.config.queues),
                tasks=len(self.tasks), concurrency=self.config.jobs_max,
            )  # fmt: skip
            await life.start(self.tasks.extensions.hooks)
            with LoopStalls(self._state, self.id).watching():
                await self._work(claimer, settler, pacemaker_process, outage, until_empty, stop_after)
        except Exception:
            self.exit_code = self.exit_code or EXIT_FAILED
            raise
        finally:
            await asyncio.gather(self._children.close(), self._suspects.close())
            await life.stop(self.tasks.extensions.hooks, self._handler_calls)
            await self._let_go()
            await pacemaker_process.stop()
            await self._goodbye()
            self._state.lease_table.close()
            undo_context()
            speak_again()
            settled = self._state.settled_count
            emit("worker_exit", worker=self.id, name=self.name, code=self.exit_code, settled=settled)
        return self.exit_code

    def _make_children(self, places: dict[str, ImportPath], most: int) -> ChildPool:
        async def ask(attempt: Attempt, died: Exception) -> None:
            await ask_rows(attempt, self._pools, died)

        return ChildPool(self.config, self.settings, places, self._state.lease_table, ask, most)

    async def _work(
        self,
        claimer: Claimer,
        settler: Settler,
        pacemaker_process: PacemakerProcess,
        outage: Outage,
        until_empty: bool,
        stop_after: int | None,
    ) -> None:
        executor = Executor(
            self._state, settler, self.id, self._children, self._suspects, self._handler_calls
        )
        deadlines = DeadlineMonitor(self._state, executor.give_up, outage, self.id)
        self._cancels = Cancellations(self._state, self.backend)
        reporter = Reporter(self._state, self.backend, outage, pacemaker_process, self._pools, self.id)
        beats = HeartbeatWatch(self._state, self.backend, outage)
        parts = [*settler.runs(), deadlines.run(), pacemaker_process.watch(), reporter.run(), beats.run()]
        parts += [self._cancels.run(), self._known_tasks.run(), self._schedule_sync.run()]
        hooks = OutcomeHooks(self.tasks.extensions.hooks)
        if self.tasks.extensions.hooks.on_outcomes:
            self._state.on_ended = hooks.ended
            parts.append(hooks.run())
        async with (
            _together(parts),
            _together([executor.run() for _ in range(self.config.jobs_max)]) as stuck,
        ):
            async with _together([claimer.run(), *self._listeners(outage)]):
                self.ready.set()
                await self._until_stopped(claimer, until_empty, stop_after)
                claimer.close()
                self._give_back(settler)
                await _until(claimer.closed.is_set, SETTLE_WAIT)
            await self._drain(settler)
            await _until(lambda: hooks.idle, LEAVE_MAX)
        executor.threads.close()
        self.stuck = len(stuck)
        self._state.figures.flush()

    def _listeners(self, outage: Outage) -> list[Coroutine[Any, Any, None]]:
        """Where no wake-up can be heard, behind some poolers, we only poll."""
        return [self._wakes(self._heard, outage.pause)] if self.backend.listens else []

    def _heard(self, queue: str | None) -> None:
        if queue and (jobs := cancelled_in(queue)):
            self._cancels.heard(jobs)
            return
        self._state.listening = queue is not None
        if queue is None:
            self._state.woken.set()
        elif not queue or queue in self.config.queues:
            self._claimer.wake()

    async def _until_stopped(self, claimer: Claimer, until_empty: bool, stop_after: int | None) -> None:
        while not self._stop.is_set():
            if until_empty and self._state.held_count == 0:
                if claimer.found_nothing.is_set():
                    return
                self._state.woken.set()  # all done here: is there more?
            if stop_after is not None and self._state.settled_count >= stop_after:
                return
            if self._state.threads_lost:
                log.error(
                    "every thread has been held for %s by a handler that would not stop; this worker ends, "
                    "start another",
                    format_duration(self.config.lease_for),
                )
                self.exit_code = EXIT_STUCK
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.02 if until_empty or stop_after else 0.25):
                    await self._stop.wait()

    def _give_back(self, settler: Settler) -> None:
        """What was claimed and not started goes back at once, with its attempt."""
        while self._state.buffer:
            settler.take(self._state.buffer.popleft(), given_back(STOPPING))

    async def _drain(self, settler: Settler) -> None:
        """Let what runs finish within the grace, then give that back too."""
        state = self._state
        self._give_back(settler)
        grace = self.config.grace.total_seconds()
        if state.running and not self._hurry.is_set():
            log.info(
                "stopping: %d jobs may finish within %s; another Ctrl-C or SIGTERM gives them back at once",
                len(state.running), format_duration(self.config.grace),
            )  # fmt: skip
        await _until(lambda: not state.running or self._hurry.is_set(), grace)
        for attempt in list(state.running):
            if attempt.stopping is None:
                attempt.stop(StopReason.LEAVING)
        await _until(lambda: not state.running and settler.idle, SETTLE_WAIT)
        if state.held_count:
            log.warning(
                "%d jobs could not be settled before leaving; they are given back if the database lets us, "
                "else their leases run out",
                state.held_count,
            )
            self.exit_code = self.exit_code or EXIT_UNSETTLED

    async def _let_go(self) -> None:
        """Give back what is still held, so that others need not wait for its lease to run out.

        What was recorded and not answered the fence refuses; what would not stop is still at work.
        """
        at_work = {(attempt.job_id, attempt.token) for attempt in self._state.running}
        held = [lease for _, _, lease in self._state.lease_table.held()]
        with contextlib.suppress(Exception):
            async with asyncio.timeout(LET_GO_WAIT):
                for lease in held:
                    if (lease.job_id, lease.token) not in at_work:
                        with contextlib.suppress(LeaseLost):
                            await self.backend.settle(lease, given_back("its worker had to leave"))

    async def _goodbye(self) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2):
                await self.backend.deregister()
        await self.backend.close()
        await self._pools.astore.close()
        await asyncio.to_thread(self._pools.store.close)


def _hush_pools() -> Callable[[], None]:
    """In an outage the driver's pools tell each failed try; the worker tells it once in five seconds."""
    pools = logging.getLogger("psycopg.pool")
    before = pools.level
    if before == logging.NOTSET:
        pools.setLevel(logging.ERROR)
    return lambda: pools.setLevel(before)


async def _until(true: Callable[[], bool], seconds: float) -> None:
    """Wait until something is true, or the time is over."""
    give_up_at = time.monotonic() + seconds
    while not true() and time.monotonic() < give_up_at:  # noqa: ASYNC110 - many things may make it true
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def _together(parts: list[Coroutine[Any, Any, None]]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run parts beside the block, and end them with it; a part that fails takes the block down.

    Gives a list that is empty until the block has ended, and then holds the parts that would not end.
    """
    tasks = [asyncio.create_task(part) for part in parts]
    stuck: list[asyncio.Task[None]] = []
    block = asyncio.current_task()
    assert block is not None

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            block.cancel()

    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield stuck
    finally:
        for task in tasks:
            task.remove_done_callback(ended)
            task.cancel()
        done, pending = await asyncio.wait(tasks, timeout=PARTS_WAIT)
        stuck.extend(pending)
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
