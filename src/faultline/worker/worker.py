"""The worker: claim, run, settle; and leave in good order."""

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from psycopg import IsolationLevel

import faultline
from faultline import failpoints
from faultline.config import Settings, WorkerConfig
from faultline.durations import format_duration
from faultline.errors import LeaseLost
from faultline.job import Job, Transaction
from faultline.outcome import Released
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.listen import Wakes
from faultline.store.news import cancelled_in
from faultline.task import Registry
from faultline.telemetry import emit, install_context
from faultline.worker.beats import BeatsWatch
from faultline.worker.cancels import Cancels
from faultline.worker.children import Children
from faultline.worker.companion import Companion
from faultline.worker.doors import Carrier, Direct, Doors, Lines
from faultline.worker.feeder import Feeder
from faultline.worker.hand import Hand
from faultline.worker.outage import Outage
from faultline.worker.overseer import Overseer
from faultline.worker.places import Place, places_of, refuse_a_worker_in_a_child
from faultline.worker.runner import Runners
from faultline.worker.settler import Settler
from faultline.worker.shelf import Shelf
from faultline.worker.stalls import Stalls
from faultline.worker.suspects import Suspects
from faultline.worker.telling import Telling
from faultline.worker.transaction import WorkTransaction, ask_rows
from faultline.worker.unfit import check_needs

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

    Its doors lead to the database, or to a server that stands before it. Connections to a database: three
    lines, one pacemaker, and one a job.transaction.
    """

    def __init__(
        self,
        tasks: Registry,
        settings: Settings,
        config: WorkerConfig,
        name: str | None = None,
        wakes: Wakes | None = None,
        doors: Doors | None = None,
    ) -> None:
        self.doors = doors or Direct(settings)
        if settings.dsn is None:
            check_needs(tasks, config.queues)
        self.tasks = tasks
        self.places = places_of(tasks)
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
        self._wakes = wakes or self.doors.listen

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
        """One line for whoever looks at the process."""
        return f"{self._shelf.in_hand} jobs in hand, {self._shelf.settled_count} settled"

    async def run(self, *, until_empty: bool = False, stop_after: int | None = None) -> int:
        """Work until told to stop, until the queues are empty, or for so many jobs; answers the exit code."""
        refuse_a_worker_in_a_child()
        failpoints.arm_from_environment()
        lines = self.doors.lines(self.config)
        outage = Outage(self.config.lease_for.total_seconds(), self.doors.far_side)
        try:
            await self.doors.greet()
            self.id = await outage.outlast(lambda: lines.claims.run(self._hello()))
        except BaseException:
            await lines.claims.close()
            await self.doors.close()
            raise
        undo_context = install_context()
        speak_again = _hush_pools()
        self._shelf = Shelf(self.config)
        self._shelf.left = stop_after
        self._lender = self.doors.lender(self._shelf.board, self.config, asyncio.get_running_loop())
        self._children = self._make_children(self.places, self.config.children_max)
        self._suspects = Suspects(self._make_children({}, self.config.suspects_max))
        companion = Companion(self._shelf, self.doors.pacing(), self.id)
        try:
            await companion.start()
            settler = Settler(self._shelf, lines.batches, lines.singles, outage, self.id)
            await asyncio.gather(companion.wait_ready(), settler.warm_up())
            feeder = Feeder(
                self._shelf, lines.claims, self.tasks, outage, self.id, self._begin, companion.hurry
            )
            feeder.claimed = self.claimed
            emit(
                "worker_start", worker=self.id, name=self.name, queues=list(self.config.queues),
                tasks=len(self.tasks), concurrency=self.config.jobs_max,
            )  # fmt: skip
            with Stalls(self._shelf, self.id).watching():
                await self._work(feeder, settler, companion, outage, until_empty, stop_after)
        except Exception:
            self.exit_code = self.exit_code or EXIT_FAILED
            raise
        finally:
            await asyncio.gather(self._children.close(), self._suspects.close())
            await self._let_go(lines.singles)
            await companion.stop()
            await self._goodbye(lines)
            self._shelf.board.close()
            undo_context()
            speak_again()
            settled = self._shelf.settled_count
            emit("worker_exit", worker=self.id, name=self.name, code=self.exit_code, settled=settled)
        return self.exit_code

    def _hello(self) -> Call[int]:
        return calls.worker_started(
            self.name, socket.gethostname(), os.getpid(), list(self.config.queues), self.config.jobs_max,
            faultline.__version__,
        )  # fmt: skip

    def _make_children(self, places: dict[str, Place], most: int) -> Children:
        async def ask(hand: Hand, died: Exception) -> None:
            await ask_rows(hand, self._lender, died)

        return Children(self.config, self.settings, places, self._shelf.board, ask, most)

    def _begin(self, job: Job, result: Any, isolation: IsolationLevel | None) -> Transaction:
        """What job.transaction() calls, in the loop or in a thread: find the hand, lend it a connection."""
        # A copy, made in one step: the loop goes on changing the set while a thread looks through it.
        for hand in list(self._shelf.running):
            if hand.job is job:
                return WorkTransaction(hand, self._lender, result, isolation)
        raise LeaseLost(job.id, job.token, None, "not_renewed")  # its handler was told to stop, and goes on

    async def _work(
        self,
        feeder: Feeder,
        settler: Settler,
        companion: Companion,
        outage: Outage,
        until_empty: bool,
        stop_after: int | None,
    ) -> None:
        runners = Runners(self._shelf, settler, self.id, self._children, self._suspects)
        overseer = Overseer(self._shelf, outage, self.id)
        self._cancels = Cancels(self._shelf, settler.single_line, self.id)
        telling = Telling(self._shelf, settler.single_line, outage, companion, self._lender, self.id)
        beats = BeatsWatch(self._shelf, settler.single_line, outage, self.id)
        parts = [*settler.runs(), overseer.run(), companion.watch(), telling.run(), beats.run()]
        parts.append(self._cancels.run())
        async with _together(parts), _together([runners.run() for _ in range(self.config.jobs_max)]) as stuck:
            async with _together([feeder.run(), *self._ears(outage)]):
                self.ready.set()
                await self._until_stopped(feeder, until_empty, stop_after)
                feeder.close()
                self._give_back(settler)
                await _until(feeder.closed.is_set, SETTLE_WAIT)
            await self._drain(settler)
        runners.threads.close()
        self.stuck = len(stuck)
        self._shelf.figures.flush()

    def _ears(self, outage: Outage) -> list[Coroutine[Any, Any, None]]:
        """Where no wake-up can be heard, behind some poolers, we only poll."""
        return [self._wakes(self._heard, outage.pause)] if self.doors.listens else []

    def _heard(self, queue: str | None) -> None:
        if queue and (jobs := cancelled_in(queue)):
            self._cancels.heard(jobs)
            return
        self._shelf.listening = queue is not None
        if queue is None:
            self._shelf.woken.set()
        elif not queue or queue in self.config.queues:
            self._shelf.wake()

    async def _until_stopped(self, feeder: Feeder, until_empty: bool, stop_after: int | None) -> None:
        while not self._stop.is_set():
            if until_empty and self._shelf.in_hand == 0:
                if feeder.found_nothing.is_set():
                    return
                self._shelf.woken.set()  # all done here: is there more?
            if stop_after is not None and self._shelf.settled_count >= stop_after:
                return
            if self._shelf.threads_lost:
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
        while self._shelf.buffer:
            settler.take(self._shelf.buffer.popleft(), Released("the worker is stopping"))

    async def _drain(self, settler: Settler) -> None:
        """Let what runs finish within the grace, then give that back too."""
        shelf = self._shelf
        self._give_back(settler)
        grace = self.config.grace.total_seconds()
        if shelf.running and not self._hurry.is_set():
            log.info(
                "stopping: %d jobs may finish within %s; another Ctrl-C or SIGTERM gives them back at once",
                len(shelf.running), format_duration(self.config.grace),
            )  # fmt: skip
        await _until(lambda: not shelf.running or self._hurry.is_set(), grace)
        for hand in list(shelf.running):
            if hand.stopping is None:
                hand.stop("leaving")
        await _until(lambda: not shelf.running and settler.idle, SETTLE_WAIT)
        if shelf.in_hand:
            log.warning(
                "%d jobs could not be settled before leaving; they are given back if the database lets us, "
                "else their leases run out",
                shelf.in_hand,
            )
            self.exit_code = self.exit_code or EXIT_UNSETTLED

    async def _let_go(self, line: Carrier) -> None:
        """Give back what is still held, so that others need not wait for its lease to run out.

        What was recorded and not answered the fence refuses; what would not stop is still at work.
        """
        at_work = {(hand.job_id, hand.token) for hand in self._shelf.running}
        held = [lease for _, _, lease in self._shelf.board.held()]
        with contextlib.suppress(Exception):
            async with asyncio.timeout(LET_GO_WAIT):
                for lease in held:
                    if (lease.job_id, lease.token) not in at_work:
                        with contextlib.suppress(LeaseLost):
                            await line.run(calls.release(lease, "its worker had to leave"))

    async def _goodbye(self, lines: Lines) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2):
                await lines.claims.run(calls.worker_stopped(self.id))
        for line in lines:
            await line.close()
        await self.doors.close()
        await self._lender.astore.close()
        await asyncio.to_thread(self._lender.store.close)


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
