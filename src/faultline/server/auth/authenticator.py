"""Authenticator: an API key in, a Caller out."""

import asyncio
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final, NamedTuple

from faultline.errors import CannotConnect, DatabaseError, NotAuthenticated
from faultline.server.auth.api_keys import hash_of, id_of
from faultline.server.auth.caller import LOOPBACK, Caller
from faultline.server.auth.credentials import Credentials
from faultline.server.auth.key_lookups import KeyLookups
from faultline.server.auth.wrong_keys import WrongKeys
from faultline.server.config import is_loopback
from faultline.server.limits import SharedLimits
from faultline.server.problems import TOO_MANY, RequestRefused
from faultline.store import calls
from faultline.store.connection_turns import taking
from faultline.store.pool import AsyncStore
from faultline.store.rows import FoundKey

CACHE_SECONDS_MAX: Final = 2.0
"""The time after which a revoked or expired key is refused everywhere."""

LOOK_EVERY_SECONDS: Final = 2.0
"""The interval between checks of the key of a long poll, a stream or a session.

Together with the time an answer is remembered it is below the five seconds that the guide promises.
"""

CACHED_MAX: Final = 4096
"""Remembered answers, valid and wrong keys apart: a flood of guesses displaces no valid key."""

ASKING_MAX: Final = 50_000
"""Keys that are looked up at the same time; keys that were valid a moment ago have places of their own."""

_NO_HASH: Final = bytes(32)
"""The comparison for a key with an unknown id, so that it takes as long as any other."""


class _Remembered(NamedTuple):
    until: float
    caller: Caller | None


class Authenticator:
    """Identifies callers by their API keys, for HTTP and gRPC; remembers each key for two seconds.

    >>> async def answer(authenticator: Authenticator, header: str | None) -> str:
    ...     caller = await authenticator.who(header, loopback=False)
    ...     caller.require("operate", "mail")
    ...     return caller.name

    With `trust_loopback` a client on this machine may read without a key, unless a proxy may be there.
    """

    def __init__(
        self, store: AsyncStore, *, trust_loopback: bool = False, behind_proxy: bool = False,
        limits: SharedLimits | None = None, clock: Callable[[], float] = monotonic,
    ) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._trusts_this_machine = trust_loopback and not behind_proxy
        self._wrong_keys = WrongKeys((limits or SharedLimits()).bad_keys_per_second)
        self._remembered: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._wrong: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._lookups = KeyLookups(store, "a key not seen lately")
        self._lookups_of_good = KeyLookups(store, "a good key")
        self._asking: dict[bytes, asyncio.Task[Caller | None]] = {}

    async def known(self, shown: Credentials) -> Caller:
        """The caller of a request; NotAuthenticated where its key opens nothing."""
        if shown.key is not None:
            return await self.who(shown.key, loopback=False)
        is_here = self._trusts_this_machine and not shown.passed_on and is_loopback(shown.address)
        return await self.who(None, loopback=is_here)

    async def refusal(self, shown: Credentials, error: NotAuthenticated) -> Exception:
        """The refusal of a key that opens nothing: counted, and late where its address sends many."""
        if shown.key is None or not await self._wrong_keys.are_too_many(shown.api, shown.address, shown.key):
            return error
        return RequestRefused(
            TOO_MANY, "too many wrong keys came from this address; ask again in a moment", 1
        )

    async def who(self, presented: str | None, *, loopback: bool) -> Caller:
        """The caller of a request with this key; NotAuthenticated, with one text for every reason."""
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
        # Remembered by its hash: the content of memory, and of a core dump, should be no valid key.
        memo = hashlib.sha256(presented.encode(errors="surrogatepass")).digest()
        known = self._remembered.get(memo) or self._wrong.get(memo)
        if known is not None and known.until > self._clock():
            return known.caller
        if id_of(presented) is None:  # not in the form of our keys: nothing to ask, nothing to remember
            return None
        asking = self._asking.get(memo)
        if asking is None:
            if len(self._asking) >= ASKING_MAX and memo not in self._remembered:
                raise CannotConnect(f"{ASKING_MAX} keys are being looked up already; ask again in a moment")
            asking = self._asking[memo] = asyncio.create_task(self._ask(memo, presented))
            asking.add_done_callback(lambda done: self._asked(memo, done))
        # A thousand long polls of one key share one question; one that leaves does not end it for the others.
        return await asyncio.shield(asking)

    def _asked(self, memo: bytes, done: asyncio.Task[Caller | None]) -> None:
        self._asking.pop(memo, None)
        if not done.cancelled():
            done.exception()  # every waiter may have left

    async def _ask(self, memo: bytes, presented: str) -> Caller | None:
        asked_at = self._clock()  # taken before the question: the answer may be older than its arrival
        # A key that was valid lately waits behind no flood of guesses.
        lookups = self._lookups_of_good if memo in self._remembered else self._lookups
        caller = await self._judge(presented, lookups)
        self._remembered.pop(memo, None)
        into = self._wrong if caller is None else self._remembered
        into[memo] = _Remembered(asked_at + CACHE_SECONDS_MAX, caller)
        into.move_to_end(memo)
        while len(into) > CACHED_MAX:
            into.popitem(last=False)
        return caller

    async def _judge(self, presented: str, lookups: KeyLookups) -> Caller | None:
        id = id_of(presented)
        if id is None:
            return None
        found = await lookups.find(id)
        same = hmac.compare_digest(hash_of(presented), _NO_HASH if found is None else found.hash)
        if found is None or not same or not found.live:
            return None
        if found.worn:
            await self._note_use(id)
        return _caller(id, found)

    async def _note_use(self, id: str) -> None:
        # A note for people: its failure refuses no request.
        with taking("door"), suppress(DatabaseError):
            await self._store.run(calls.key_used(id))


def _caller(id: str, found: FoundKey) -> Caller:
    queues = None if found.queues is None else frozenset(found.queues)
    return Caller(found.name, frozenset(found.scopes), queues, id)
