"""Live changes: one look at the ledger serves all who listen. Only hints; the ledger is the record."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from faultline.access import Caller
from faultline.errors import DatabaseError
from faultline.job import LedgerEntry
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.turns import for_everybody

log = logging.getLogger("faultline.server")

LOOK_EVERY: Final = 0.5
LOOK_EVERY_IN_TROUBLE: Final = 3.0
COMMITS_WITHIN: Final = timedelta(seconds=5)
"""A lease is stamped before its transaction commits: each look goes back so far, and skips what was told."""

_NAMES: Final = (
    "job_id",
    "outcome",
    "attempt",
    "worker",
    "claimed_at",
    "settled_at",
    "error",
    "task",
    "queue",
)
_encode: Final = msgspec.json.Encoder().encode

Run = Callable[[Call[Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Event:
    """One change, as it is sent; `queue` says who may see it."""

    queue: str | None
    text: bytes


GAP: Final = Event(None, b"event: gap\ndata: {}\n\n")
"""More happened than one look can tell: the ledger has it."""


def entry_event(entry: LedgerEntry) -> Event:
    """A lease that ended. Its id is a moment: whoever comes back with it is told what has happened since."""
    facts: dict[str, Any] = {name: getattr(entry, name) for name in _NAMES} | {"token": str(entry.token)}
    moment = int(entry.settled_at.timestamp() * 1_000_000)
    return Event(entry.queue, b"id: %d\nevent: entry\ndata: %s\n\n" % (moment, _encode(facts)))


def moment_of(event_id: str | None) -> datetime | None:
    """The moment an event's id stands for; None for what is no id of ours."""
    if not event_id or not (event_id.isascii() and event_id.isdigit() and len(event_id) <= 16):
        return None
    return datetime.fromtimestamp(int(event_id) / 1_000_000, UTC)


class Subscriber:
    """One stream: what it has not read yet, up to a bound."""

    def __init__(self, caller: Caller, most: int) -> None:
        self._caller = caller
        self._most = most
        self._unread: deque[bytes] = deque()
        self._news = asyncio.Event()
        self.behind = False
        """It reads too slowly: what it missed it has to fetch by coming back with the last id it saw."""
        self.over = False

    def may_hear(self, event: Event) -> bool:
        return event.queue is None or self._caller.may("read", event.queue)

    def tell(self, event: Event) -> None:
        if not self.may_hear(event):
            return
        if len(self._unread) >= self._most:
            self.behind = True
        else:
            self._unread.append(event.text)
        self._news.set()

    def end(self) -> None:
        self.over = True
        self._news.set()

    async def next(self, seconds: float) -> bytes | None:
        """Everything that is new; None when there was nothing for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()
        text = b"".join(self._unread)
        self._unread.clear()
        return text or None


class Feed:
    """Looks at the ledger for as long as somebody listens."""

    def __init__(self, run: Run, buffered_max: int) -> None:
        self._run = run
        self._buffered_max = buffered_max
        self._subscribers: set[Subscriber] = set()
        self._looking: asyncio.Task[None] | None = None
        self._told: dict[tuple[int, int, str], datetime] = {}
        self._over = False

    def subscribe(self, caller: Caller) -> Subscriber:
        subscriber = Subscriber(caller, self._buffered_max)
        if self._over:
            subscriber.end()
            return subscriber
        self._subscribers.add(subscriber)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), context=for_everybody())
        return subscriber

    def leave(self, subscriber: Subscriber) -> None:
        self._subscribers.discard(subscriber)
        if not self._subscribers and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def end(self) -> None:
        """Let everybody go, and whoever still comes."""
        self._over = True
        for subscriber in self._subscribers:
            subscriber.end()

    async def since(self, moment: datetime) -> list[Event]:
        """What happened since a moment, as far as it is held."""
        entries: list[LedgerEntry] = await self._run(calls.changes(moment, self._buffered_max))
        return [entry_event(entry) for entry in reversed(entries)]

    async def _look(self) -> None:
        latest: datetime | None = None  # by the database's clock: ours may be another
        first = True
        while True:
            pause = LOOK_EVERY
            try:
                since = None if latest is None else latest - COMMITS_WITHIN
                found: list[LedgerEntry] = await self._run(calls.changes(since, self._buffered_max))
                latest = max((entry.settled_at for entry in found), default=latest)
                fresh = self._unheard(found, latest)
                if not first:
                    self._tell(fresh, complete=len(fresh) < self._buffered_max)
                first = False
            except (DatabaseError, TimeoutError) as trouble:
                log.debug("live changes wait for the database: %s", trouble)
                pause = LOOK_EVERY_IN_TROUBLE
            except Exception:
                log.exception("looking for live changes failed; the next look comes as usual")
                pause = LOOK_EVERY_IN_TROUBLE
            await asyncio.sleep(pause)

    def _tell(self, fresh: list[LedgerEntry], *, complete: bool) -> None:
        events = [entry_event(entry) for entry in fresh]
        for event in events if complete else [GAP, *events]:
            for subscriber in self._subscribers:
                subscriber.tell(event)

    def _unheard(self, found: list[LedgerEntry], latest: datetime | None) -> list[LedgerEntry]:
        """Those that were not told before, oldest first."""
        fresh = []
        for entry in reversed(found):
            name = (entry.job_id, entry.token, entry.outcome)
            if name not in self._told:
                self._told[name] = entry.settled_at
                fresh.append(entry)
        if latest is not None:
            horizon = latest - 2 * COMMITS_WITHIN
            self._told = {name: at for name, at in self._told.items() if at >= horizon}
        return fresh
