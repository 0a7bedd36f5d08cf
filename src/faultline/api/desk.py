"""The desk: what every route has at hand. One for an app; no state but what can be lost with the process."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import psycopg

from faultline.access import Acting, Caller, Doorman, acting
from faultline.api.drilling import Drilling
from faultline.api.events import Feed
from faultline.api.gathering import Gatherer
from faultline.api.problems import OVERLOADED, Refused
from faultline.api.shared import Shared
from faultline.client.sender import Sender
from faultline.client.stores import Stores
from faultline.config import Settings
from faultline.errors import FaultlineError, ServerUnavailable
from faultline.server.doors import DoorFigures
from faultline.server.limits import PAGE_MAX, Limits
from faultline.server.waits import Waits
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.connect import agreet
from faultline.store.news import JOBS_MAX
from faultline.store.rows import QueueInfo, WorkerInfo
from faultline.store.run import AsyncStore

T = TypeVar("T")

Metrics = Callable[[str], Awaitable[tuple[bytes, str]]]
"""Given an Accept header, what `/metrics` answers: the text, and its content type."""

FRESH_SECONDS = 1.0
"""How old the figures of `/stats` may be: counted at most once a second, whatever the number of askers."""
READY_SECONDS = 1.0
READY_SECONDS_MAX = 2.0
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConfig:
    """How the API behaves, wherever it is mounted.

    >>> ApiConfig(hosts=("jobs.example.org",)).any_host_with_key
    False
    """

    hosts: tuple[str, ...] = LOOPBACK_HOSTS
    """What a Host header may say."""
    any_host_with_key: bool = False
    """Whether a request with a key may call us by any name: a page in a browser has none to show."""
    behind_proxy: bool = False
    trust_loopback: bool = False
    """Whether a request from this machine may read without a key; never with a proxy there."""
    limits: Limits = field(default_factory=Limits)


async def no_metrics(accept: str) -> tuple[bytes, str]:
    """What there is to scrape where nobody counts: that the process is there."""
    return b"# TYPE faultline_up gauge\nfaultline_up 1\n", "text/plain; version=0.0.4; charset=utf-8"


class _OneStore(Stores):
    """For a sender that lives on one loop, with a store that is there already."""

    def __init__(self, store: AsyncStore) -> None:
        super().__init__(lambda: Settings(dsn=store.dsn))
        self._store = store

    def of_this_loop(self) -> AsyncStore:
        return self._store


class Glance(NamedTuple):
    """What `/stats` is made of."""

    queues: list[QueueInfo]
    workers: list[WorkerInfo]
    round_age: float | None


def _too_many_wait(count: int) -> Refused:
    return Refused(OVERLOADED, f"{count} clients wait for jobs already", 1)


class Desk:
    """The store, whoever looks at keys, and what requests share."""

    def __init__(
        self, store: AsyncStore, doorman: Doorman, config: ApiConfig, metrics: Metrics | None = None
    ) -> None:
        self.store = store
        self.doorman = doorman
        self.config = config
        self.sender = Sender(_OneStore(store))
        limits = config.limits
        self.gatherer = Gatherer(store, self.sender, limits.calls_at_once_max, limits.answer_seconds_max)
        self.waits = Waits(self.run, limits.waits_max, _too_many_wait)
        self.feed = Feed(self.run, limits.events_buffered_max)
        self.drilling = Drilling(store.dsn, limits.drills_at_once_max)
        self.metrics = metrics or no_metrics
        self.door = DoorFigures("http")
        self.queues: Shared[list[QueueInfo]] = Shared(lambda: self.run(calls.list_queues()))
        self.glance: Shared[Glance] = Shared(self._glance, FRESH_SECONDS)
        self.cancelled: Callable[[int], None] = lambda job_id: None
        """Told of each job that is cancelled here; where gRPC is served, its sessions."""
        self.draining = asyncio.Event()
        self._clock = time.monotonic
        self._looked_at = float("-inf")
        self._unready: Exception | None = None
        self._looking = asyncio.Lock()

    async def run(self, call: Call[T]) -> T:
        """Carry one call, for as long as a client may be kept waiting."""
        async with asyncio.timeout(self.config.limits.answer_seconds_max):
            return await self.store.run(call)

    async def _glance(self) -> "Glance":
        queues = await self.queues.get()
        workers = await self.run(calls.list_workers(False, PAGE_MAX))
        age, *_ = await self.run(calls.health())
        return Glance(queues, workers, age)

    @asynccontextmanager
    async def acting(self, caller: Caller, reason: str | None) -> AsyncIterator[Acting]:
        """One transaction in the caller's name; it is given up when somebody keeps it waiting too long."""
        async with asyncio.timeout(self.config.limits.answer_seconds_max):
            async with acting(self.store, caller, reason) as act:
                yield act

    async def tell_cancelled(self, job_ids: Sequence[int]) -> None:
        """Have whoever runs these jobs told now: here, at other replicas, and where workers listen.

        Only a hint: the next beat of each says it as well.
        """
        for job_id in job_ids:
            self.cancelled(job_id)
        with suppress(FaultlineError, psycopg.Error, TimeoutError):
            for start in range(0, len(job_ids), JOBS_MAX):
                await self.run(calls.wake_cancelled(job_ids[start : start + JOBS_MAX]))

    async def check_ready(self) -> None:
        """Raise what is wrong with the database or its schema; looked at once a second, however many ask."""
        async with self._looking:
            if self._clock() - self._looked_at > READY_SECONDS:
                self._unready = await self._trouble()
                self._looked_at = self._clock()
            if self._unready is not None:
                raise self._unready

    async def _trouble(self) -> Exception | None:
        """What is wrong with the database or its schema now, if anything is."""
        try:
            async with asyncio.timeout(READY_SECONDS_MAX), self.store.connection() as conn:
                await agreet(conn)
        except TimeoutError:
            return ServerUnavailable("the database does not answer")
        except Exception as error:  # whoever asks is told what it is, and it is not kept from the log
            return error
        return None

    def drain(self) -> None:
        """Say that the server is about to stop: readiness says no, and whoever waits gets an answer now."""
        self.draining.set()
        self.waits.end()
        self.feed.end()
        self.drilling.stop()
