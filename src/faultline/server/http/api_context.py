"""ApiContext: the shared objects of every route, one for an app. Its state may be lost with the process."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import psycopg

from faultline.errors import FaultlineError, ServerUnavailable
from faultline.server.auth import Acting, Authenticator, Caller, acting
from faultline.server.http.drill_runs import DrillRuns
from faultline.server.http.event_feed import EventFeed
from faultline.server.http.shared_answers import SharedAnswer, SharedAnswers
from faultline.server.http.submit.batcher import Batcher
from faultline.server.limits import PAGE_MAX, Limits
from faultline.server.server_sender import sender_on
from faultline.server.throttling.payload_budget import PayloadBudget
from faultline.server.traffic_stats import TrafficStats
from faultline.server.waits import JobWaits
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.driver.connect import acheck_server
from faultline.store.driver.notifications import JOBS_MAX
from faultline.store.pool import AsyncStore
from faultline.store.rows import QueueInfo, WorkerInfo

T = TypeVar("T")

Metrics = Callable[[str], Awaitable[tuple[bytes, str]]]
"""From an Accept header, the answer of `/metrics`: the text, and its content type."""

FRESH_SECONDS = 1.0
"""The largest age of the figures of `/stats`: counted at most once a second, for any number of requests."""
READY_SECONDS = 1.0
READY_SECONDS_MAX = 2.0
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConfig:
    """Settings of the API, the same alone or mounted in another app.

    >>> ApiConfig(hosts=("jobs.example.org",)).any_host_with_key
    False
    """

    hosts: tuple[str, ...] = LOOPBACK_HOSTS
    """The allowed values of a Host header."""
    any_host_with_key: bool = False
    """Requests with a key may use any host name: a page in a browser has no key to send."""
    drills: bool = False
    """Whether there are routes that start drills."""
    limits: Limits = field(default_factory=Limits)


async def no_metrics(accept: str) -> tuple[bytes, str]:
    """The metrics of a process without an exporter: only that it is up."""
    return b"# TYPE faultline_up gauge\nfaultline_up 1\n", "text/plain; version=0.0.4; charset=utf-8"


class StatsSnapshot(NamedTuple):
    """The rows behind `/stats`, beside the workers."""

    queues: list[QueueInfo]
    round_age: float | None


class ApiContext:
    """The store, the Authenticator, and the state that requests share."""

    def __init__(
        self,
        store: AsyncStore,
        authenticator: Authenticator,
        config: ApiConfig,
        metrics: Metrics | None = None,
    ) -> None:
        self.store = store
        self.authenticator = authenticator
        self.config = config
        self.sender = sender_on(store)
        limits = config.limits
        self.batcher = Batcher(store, self.sender, limits.calls_at_once_max, limits.answer_seconds_max)
        self.waits = JobWaits(self.run, limits.waits_max)
        self.answers = PayloadBudget(limits.answer_bytes_max, limits.answer_bytes_per_key)
        self.feed = EventFeed(self.run, limits.events_buffered_max)
        self.drill_runs = DrillRuns(store.dsn, limits.drills_at_once_max)
        self.metrics = metrics or no_metrics
        self.traffic = TrafficStats("http")
        self.queues: SharedAnswer[list[QueueInfo]] = SharedAnswer(lambda: self.run(calls.list_queues()))
        self.stats: SharedAnswer[StatsSnapshot] = SharedAnswer(self._stats, FRESH_SECONDS)
        self.workers = SharedAnswers(self._workers, FRESH_SECONDS)
        self.cancelled: Callable[[int], None] = lambda job_id: None
        """Called with each job that is cancelled here; where gRPC is served, it tells the sessions."""
        self.draining = asyncio.Event()
        self._clock = time.monotonic
        self._looked_at = float("-inf")
        self._unready: Exception | None = None
        self._looking = asyncio.Lock()

    async def run(self, call: Call[T]) -> T:
        """Make one call, within the longest time that a client may wait."""
        async with asyncio.timeout(self.config.limits.answer_seconds_max):
            return await self.store.run(call)

    async def _stats(self) -> "StatsSnapshot":
        queues = await self.queues.get()
        age, *_ = await self.run(calls.health())
        return StatsSnapshot(queues, age)

    async def _workers(self, queues: frozenset[str] | None) -> list[WorkerInfo]:
        return await self.run(calls.list_workers(False, PAGE_MAX, queues))

    @asynccontextmanager
    async def acting(self, caller: Caller, reason: str | None) -> AsyncIterator[Acting]:
        """One transaction in the caller's name; it ends with an error when a lock delays it too long."""
        async with asyncio.timeout(self.config.limits.answer_seconds_max):
            async with acting(self.store, caller, reason) as act:
                yield act

    async def tell_cancelled(self, job_ids: Sequence[int]) -> None:
        """Tell the workers of these jobs now: here, at other replicas, and where workers listen.

        Only a hint: the next beat of each worker brings the same news.
        """
        for job_id in job_ids:
            self.cancelled(job_id)
        with suppress(FaultlineError, psycopg.Error, TimeoutError):
            for start in range(0, len(job_ids), JOBS_MAX):
                await self.run(calls.wake_cancelled(job_ids[start : start + JOBS_MAX]))

    async def check_ready(self) -> None:
        """Raise the problem of the database or its schema; checked once a second, however many ask."""
        async with self._looking:
            if self._clock() - self._looked_at > READY_SECONDS:
                self._unready = await self._trouble()
                self._looked_at = self._clock()
            if self._unready is not None:
                raise self._unready

    async def _trouble(self) -> Exception | None:
        """The present problem of the database or its schema, if there is one."""
        try:
            async with asyncio.timeout(READY_SECONDS_MAX), self.store.connection() as conn:
                await acheck_server(conn)
        except TimeoutError:
            return ServerUnavailable("the database does not answer")
        except Exception as error:  # the requests get it as their answer, and it is logged too
            return error
        return None

    def drain(self) -> None:
        """Announce the stop of the server: readiness fails, and long polls get an answer now."""
        self.draining.set()
        self.waits.end()
        self.feed.end()
        self.drill_runs.stop()
