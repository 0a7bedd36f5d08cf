"""Live changes: one query of the ledger serves all streams. Only hints; the ledger is the record."""

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from faultline.errors import DatabaseError
from faultline.job import LedgerEntry
from faultline.server.auth import Caller
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.connection_turns import on_behalf_of_server

log = logging.getLogger("faultline.server")

LOOK_EVERY: Final = 0.5
LOOK_EVERY_IN_TROUBLE: Final = 3.0
COMMITS_WITHIN: Final = timedelta(seconds=5)
"""A lease is stamped before its transaction commits: each query goes back so far, and skips known events."""

GAP_EVERY: Final = 5.0
"""Seconds between two gaps that are told because a query could not go back so far."""

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
    """One change, as it is sent; `queue` decides which callers may see it."""

    queue: str | None
    text: bytes


GAP: Final = Event(None, b"event: gap\ndata: {}\n\n")
"""More happened than one query can tell, or may have: the ledger has it."""


def entry_event(entry: LedgerEntry) -> Event:
    """A lease that ended. Its id is a moment: a client that returns with it gets the events since then."""
    facts: dict[str, Any] = {name: getattr(entry, name) for name in _NAMES} | {"token": str(entry.token)}
    moment = int(entry.settled_at.timestamp() * 1_000_000)
    return Event(entry.queue, b"id: %d\nevent: entry\ndata: %s\n\n" % (moment, _encode(facts)))


def _events(entries: list[LedgerEntry], *, complete: bool) -> list[Event]:
    events = [entry_event(entry) for entry in entries]
    return events if complete else [GAP, *events]


def moment_of(event_id: str | None) -> datetime | None:
    """The moment of an event's id; None for an invalid id."""
    if not event_id or not (event_id.isascii() and event_id.isdigit() and len(event_id) <= 16):
        return None
    return datetime.fromtimestamp(int(event_id) / 1_000_000, UTC)


class Subscriber:
    """One stream: its unread events, up to a bound."""

    def __init__(self, caller: Caller, most: int) -> None:
        self.caller = caller
        self._most = most
        self._unread: deque[bytes] = deque()
        self._news = asyncio.Event()
        self.behind = False
        """It reads too slowly: the client gets missed events by returning with the last id it saw."""
        self.over = False

    def may_hear(self, event: Event) -> bool:
        return event.queue is None or self.caller.may("read", event.queue)

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
        """All new events; None when there were none for this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()
        text = b"".join(self._unread)
        self._unread.clear()
        return text or None


class CutOff:
    """Looks that found as many events as they may: one that was committed late may lie behind all of them.

    It is told as a gap, which has clients read the ledger: after such looks, but not after each of them.
    """

    def __init__(self) -> None:
        self._owed = False
        self._told_at = -math.inf

    def is_to_be_told(self, cut_off: bool, now: float) -> bool:
        """Whether a gap is to be told at this look, which was cut off or not."""
        self._owed |= cut_off
        if not self._owed or now - self._told_at < GAP_EVERY:
            return False
        self._owed, self._told_at = False, now
        return True


class EventFeed:
    """Queries the ledger as long as there are streams."""

    def __init__(self, run: Run, buffered_max: int) -> None:
        self._run = run
        self._buffered_max = buffered_max
        self._subscribers: set[Subscriber] = set()
        self._looking: asyncio.Task[None] | None = None
        self._told: dict[tuple[int, int, str], datetime] = {}
        self._cut_off = CutOff()
        self._over = False

    def subscribe(self, caller: Caller) -> Subscriber:
        subscriber = Subscriber(caller, self._buffered_max)
        if self._over:
            subscriber.end()
            return subscriber
        self._subscribers.add(subscriber)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), context=on_behalf_of_server())
        return subscriber

    def leave(self, subscriber: Subscriber) -> None:
        self._subscribers.discard(subscriber)
        if not self._subscribers and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def end(self) -> None:
        """End all streams, present and future."""
        self._over = True
        for subscriber in self._subscribers:
            subscriber.end()

    async def since(self, moment: datetime) -> list[Event]:
        """The events since a moment, of all queues; a gap first where the limit may have cut some off."""
        found: list[LedgerEntry] = await self._run(calls.changes(moment, self._buffered_max))
        return _events(found[::-1], complete=len(found) < self._buffered_max)

    async def _look(self) -> None:
        latest: datetime | None = None  # by the database's clock: ours may differ
        first = True
        while True:
            pause = LOOK_EVERY
            try:
                since = None if latest is None else latest - COMMITS_WITHIN
                found: list[LedgerEntry] = await self._run(calls.changes(since, self._buffered_max))
                latest = max((entry.settled_at for entry in found), default=latest)
                fresh = self._unheard(found, latest)
                missed = self._cut_off.is_to_be_told(len(found) >= self._buffered_max, time.monotonic())
                if not first:
                    self._tell(fresh, complete=len(fresh) < self._buffered_max and not missed)
                first = False
            except (DatabaseError, TimeoutError) as trouble:
                log.debug("live changes wait for the database: %s", trouble)
                pause = LOOK_EVERY_IN_TROUBLE
            except Exception:
                log.exception("looking for live changes failed; the next look comes as usual")
                pause = LOOK_EVERY_IN_TROUBLE
            await asyncio.sleep(pause)

    def _tell(self, fresh: list[LedgerEntry], *, complete: bool) -> None:
        """The new events, after a gap where there may be more."""
        for event in _events(fresh, complete=complete):
            for subscriber in self._subscribers:
                subscriber.tell(event)

    def _unheard(self, found: list[LedgerEntry], latest: datetime | None) -> list[LedgerEntry]:
        """The events that were not sent before, oldest first."""
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
