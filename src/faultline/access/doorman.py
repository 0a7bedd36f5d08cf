"""Doorman: a key as it was shown in, a Caller out."""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final, NamedTuple

from faultline.access.caller import LOOPBACK, Caller
from faultline.access.keys import hash_of, id_of
from faultline.errors import DatabaseError, NotAuthenticated
from faultline.store import calls
from faultline.store.rows import FoundKey
from faultline.store.run import AsyncStore

CACHE_SECONDS_MAX: Final = 5.0
"""A key that was revoked, or has expired, opens nothing after this."""

CACHED_MAX: Final = 4096
"""Answers remembered, wrong keys among them: guessing costs the database little, and us no memory."""

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
        known = self._remembered.get(memo)
        if known is not None and known.until > self._clock():
            return known.caller
        asked_at = self._clock()  # from before the question: the answer may be older than its arrival
        caller = await self._judge(presented)
        self._remembered[memo] = _Remembered(asked_at + CACHE_SECONDS_MAX, caller)
        self._remembered.move_to_end(memo)
        while len(self._remembered) > CACHED_MAX:
            self._remembered.popitem(last=False)
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
