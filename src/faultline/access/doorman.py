"""Doorman: a key as it was shown in, a Caller out."""

import asyncio
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final, NamedTuple

from faultline.access.caller import LOOPBACK, Caller
from faultline.access.keys import hash_of, id_of
from faultline.errors import CannotConnect, DatabaseError, NotAuthenticated
from faultline.store import calls
from faultline.store.rows import FoundKey
from faultline.store.run import AsyncStore
from faultline.store.turns import taking

CACHE_SECONDS_MAX: Final = 2.0
"""A key that was revoked, or has expired, opens nothing after this."""

LOOK_EVERY_SECONDS: Final = 2.0
"""How often the key of a long poll, a stream or a session is looked at again.

With the time an answer is remembered it stays below the five seconds that the guide promises.
"""

CACHED_MAX: Final = 4096
"""Answers remembered, good and wrong keys apart: a flood of guesses makes no good key be looked up again."""

ASKING_MAX: Final = 2_000
"""Keys that are being looked up at once; one that was good a moment ago is looked up all the same."""

_GOOD, _UNKNOWN = "a good key", "a key not seen lately"
"""The names under which keys are looked up, each with a connection of its own."""

_NO_HASH: Final = bytes(32)
"""What a key with an unknown id is compared with, so that it takes as long as any other."""


class _Remembered(NamedTuple):
    until: float
    caller: Caller | None


class Doorman:
    """Says who is calling, by the API key they show; asks the database at most once a key every five seconds.

    >>> async def answer(doorman: Doorman, header: str | None) -> str:
    ...     caller = await doorman.who(header, loopback=False)
    ...     caller.require("operate", "mail")
    ...     return caller.name
    """

    def __init__(self, store: AsyncStore, *, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self._remembered: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._wrong: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[Caller | None]] = {}

    async def who(self, presented: str | None, *, loopback: bool) -> Caller:
        """The caller who shows this key; NotAuthenticated, in the same words whatever is wrong with it."""
        if presented is None or not presented:
            if loopback:
                return LOOPBACK
            raise NotAuthenticated("no API key was shown; send one as `Authorization: Bearer flk_...`")
        caller = await self._recall(presented)
        if caller is None:
            raise NotAuthenticated(
                "this API key opens nothing: it is wrong, expired or revoked; ask for another"
            )
        return caller

    async def _recall(self, presented: str) -> Caller | None:
        # Remembered by its hash: what lies in memory, and in a core dump, should open nothing.
        memo = hashlib.sha256(presented.encode(errors="surrogatepass")).digest()
        known = self._remembered.get(memo) or self._wrong.get(memo)
        if known is not None and known.until > self._clock():
            return known.caller
        if id_of(presented) is None:  # no key of ours: nothing to ask, nothing to remember
            return None
        asking = self._asking.get(memo)
        if asking is None:
            if len(self._asking) >= ASKING_MAX and memo not in self._remembered:
                raise CannotConnect(f"{ASKING_MAX} keys are being looked up already; ask again in a moment")
            asking = self._asking[memo] = asyncio.create_task(self._ask(memo, presented))
            asking.add_done_callback(lambda done: self._asked(memo, done))
        # A thousand long polls of one key ask once; one of them that leaves does not end it for the others.
        return await asyncio.shield(asking)

    def _asked(self, memo: bytes, done: asyncio.Task[Caller | None]) -> None:
        self._asking.pop(memo, None)
        if not done.cancelled():
            done.exception()  # all who asked may have left

    async def _ask(self, memo: bytes, presented: str) -> Caller | None:
        asked_at = self._clock()  # from before the question: the answer may be older than its arrival
        # One name has a part of the lane: a key that was good lately waits behind no flood of guesses.
        with taking("door", _GOOD if memo in self._remembered else _UNKNOWN):
            caller = await self._judge(presented)
        self._remembered.pop(memo, None)
        into = self._wrong if caller is None else self._remembered
        into[memo] = _Remembered(asked_at + CACHE_SECONDS_MAX, caller)
        into.move_to_end(memo)
        while len(into) > CACHED_MAX:
            into.popitem(last=False)
        return caller

    async def _judge(self, presented: str) -> Caller | None:
        id = id_of(presented)
        if id is None:
            return None
        found = await self._store.run(calls.find_key(id))
        same = hmac.compare_digest(hash_of(presented), _NO_HASH if found is None else found.hash)
        if found is None or not same or not found.live:
            return None
        if found.worn:
            await self._note_use(id)
        return _caller(id, found)

    async def _note_use(self, id: str) -> None:
        with suppress(DatabaseError):  # a note for people: nobody is kept out for want of it
            await self._store.run(calls.key_used(id))


def _caller(id: str, found: FoundKey) -> Caller:
    queues = None if found.queues is None else frozenset(found.queues)
    return Caller(found.name, frozenset(found.scopes), queues, id)
