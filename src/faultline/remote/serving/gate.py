"""The gate: who is calling, and whether the call has what every call must have."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial, wraps
from time import monotonic
from typing import Any, Final, TypeVar

import grpc

from faultline.access import Caller, Doorman
from faultline.errors import NotAuthenticated
from faultline.remote.serving.config import GrpcConfig
from faultline.remote.serving.connections import Connections
from faultline.remote.serving.problems import (
    NO_DEADLINE,
    STOPPING,
    TOO_MANY,
    TurnedAway,
    answering,
    kind_of,
    status_of,
)
from faultline.remote.serving.receiving import Place, Receiving
from faultline.server.config import FORWARDED, is_loopback
from faultline.server.doors import DoorFigures, Served
from faultline.server.lasting import while_known
from faultline.server.revoked import Revoked
from faultline.server.turnstile import VITAL, Budget, Turnstile, Why
from faultline.server.wrong_keys import WrongKeys
from faultline.store.turns import Lane, taking
from faultline.telemetry.events import counted

Context = grpc.aio.ServicerContext[Any, Any]
Q = TypeVar("Q")
A = TypeVar("A")

FORM: Final = "bearer "
CALL: Final = "call"
POLL: Final = "poll"
WAIT: Final = "wait"
LONG: Final = frozenset({POLL, WAIT})
"""Calls that may outlive their key."""

PACE_SECONDS: Final = 0.02
AGAIN_SECONDS: Final = 0.5
"""A message that took longer to come may have outlived its key: then the key is looked at once more."""

NOT_A_KEY: Final = "not in the form `Bearer flk_...`"


class Gate:
    """Lets calls in: by key, within limits, while the server is not stopping."""

    def __init__(self, doorman: Doorman, config: GrpcConfig) -> None:
        self.connections = Connections(config)
        self.door = DoorFigures("grpc")
        self.door.connections = lambda: len(self.connections)
        self._doorman = doorman
        self._config = config
        tls = config.tls
        self._revoked = None if tls is None or tls.revoked is None else Revoked(tls.revoked)
        self._wrong_keys = WrongKeys(config.bad_keys_per_second, "gRPC")
        self.turnstile = _turnstile(config)
        self.door.in_hand = self.turnstile.by_kind
        self.closed = False
        places = (config.messages_at_once_max, config.messages_at_once_per_key, config.message_seconds_max)
        self._receiving = {VITAL: Receiving(*places), CALL: Receiving(*places)}
        """What keeps jobs running is read in places of its own."""

    async def admit(self, context: Context, scope: str) -> Caller:
        """Whoever makes this call, if they may do such things at all."""
        caller = await self.who(context)
        caller.require(scope)
        return caller

    async def who(self, context: Context) -> Caller:
        """The caller; a key that opens nothing is noted, and slowed down where there are many."""
        try:
            caller = await self.known(context)
            self.connections.admit(context.peer())
            return caller
        except NotAuthenticated:
            key, peer = presented(context), host_of(context.peer()) or ""
            if key is not None and await self._wrong_keys.are_too_many(peer, key):
                raise TurnedAway(
                    TOO_MANY, "too many wrong keys came from this address; ask again in a moment"
                ) from None
            raise

    async def known(self, context: Context) -> Caller:
        """The caller; NotAuthenticated for a key, or a certificate, that opens nothing."""
        self.look_at_the_certificate(context)
        return await self._doorman.who(presented(context), loopback=self._is_here(context))

    def look_at_the_certificate(self, context: Context) -> None:
        """Refuse a client whose certificate was revoked."""
        revoked = self._revoked
        if revoked is not None and any(revoked.lists(der) for der in shown_certificates(context)):
            raise NotAuthenticated("this certificate opens nothing: it was revoked; ask for another")

    def _is_here(self, context: Context) -> bool:
        trusted = self._config.trust_loopback and not self._config.behind_proxy
        return trusted and not was_passed_on(context) and is_loopback(host_of(context.peer()))

    @contextmanager
    def passing(self, caller: Caller, kind: str) -> Iterator[None]:
        """Count a call in for as long as it takes, and have its database calls take their turn."""
        if self.closed:
            raise TurnedAway(STOPPING, "the server is stopping; ask again, another one answers")
        lane: Lane = "vital" if kind == VITAL else "plain"
        with self.turnstile.passing(caller.actor, kind), taking(lane, caller.actor):
            yield

    async def while_known(
        self,
        context: Context,
        work: Awaitable[A],
        scope: str | None = None,
        seconds_max: float | None = None,
        dropped: Callable[[A], None] | None = None,
    ) -> A:
        """Do what may take long, for as long as its key opens something."""

        async def look() -> None:
            caller = await self.known(context)
            if scope is not None:
                caller.require(scope)

        return await while_known(work, look, self._config.key_check_seconds, seconds_max, dropped)

    def message(self, context: Context, caller: Caller, kind: str) -> AbstractAsyncContextManager[Any]:
        """The message of a unary call, for as long as the block lasts."""
        receiving = self._receiving[VITAL if kind == VITAL else CALL]
        return receiving.message(context, caller.actor, lasting=kind in LONG)

    def place(self, caller: Caller) -> Place:
        """A place for a large message of a session, still to be taken."""
        return self._receiving[VITAL].place(caller.actor)

    async def pace(self, caller: Caller, kind: str) -> None:
        """Wait until one more message of a session is within its key's rate."""
        while not self.turnstile.has_turn(caller.actor, kind):  # noqa: ASYNC110 - a rate has no event to wait for
            await asyncio.sleep(PACE_SECONDS)


def _turnstile(config: GrpcConfig) -> Turnstile:
    budgets = {
        CALL: Budget(config.calls_at_once_max, config.calls_at_once_per_key),
        POLL: Budget(config.polls_max, config.polls_per_key),
        WAIT: Budget(config.waits_max, config.waits_per_key),
        VITAL: Budget(config.vital_at_once_max, config.vital_at_once_per_key),
    }
    return Turnstile(budgets, config.calls_per_second_per_key, _refused)


def _refused(why: Why, detail: str) -> TurnedAway:
    return TurnedAway(TOO_MANY, f"{detail}; ask again in a moment")


def presented(context: Context) -> str | None:
    """The key as it was shown; more than one, or another form, is a key that opens nothing."""
    # A header in any case of letters arrives in small ones; a binary one would have another name.
    shown = [str(value) for name, value in context.invocation_metadata() or () if name == "authorization"]
    if not shown:
        return None
    if len(shown) > 1 or not shown[0].lower().startswith(FORM):
        return NOT_A_KEY
    return shown[0][len(FORM) :].strip() or NOT_A_KEY


def was_passed_on(context: Context) -> bool:
    """Whether a proxy says that it stands between: then the address is not the client's."""
    return any(name.encode() in FORWARDED for name, _ in context.invocation_metadata() or ())


def host_of(peer: str) -> str | None:
    """The address in gRPC's word for the other side.

    >>> host_of("ipv4:127.0.0.1:5000"), host_of("ipv6:%5B::1%5D:5000"), host_of("unix:")
    ('127.0.0.1', '::1', '127.0.0.1')
    """
    kind, _, rest = peer.partition(":")
    if kind == "unix":  # only this machine can reach a socket in its file system
        return "127.0.0.1"
    host = rest.rpartition(":")[0]
    return host.replace("%5B", "").replace("%5D", "").strip("[]") or None


def shown_certificates(context: Context) -> list[bytes]:
    """The client certificate of a connection, as DER; none where none is asked for."""
    shown = context.auth_context() or {}
    return [ssl.PEM_cert_to_DER_cert(pem.decode()) for pem in shown.get("x509_pem_cert", ())]


@contextmanager
def counting_refusals(served: Served) -> Iterator[None]:
    """Have the figures say why a call was not carried out."""
    try:
        yield
    except Exception as error:
        kind = kind_of(error)
        served.refuse(status_of(kind), kind.code)
        raise


def bytes_of(message: Any) -> int:
    """How long a message is; nothing is measured while nobody counts."""
    return int(message.ByteSize()) if counted() else 0


Unary = Callable[[Any, Q, Caller, Context], Awaitable[A]]
Registered = Callable[[Any, Any, Context], Awaitable[A]]


def unary(
    scope: str, kind: str = CALL, dropped: Callable[[Any, Any], None] | None = None
) -> Callable[[Unary[Q, A]], Registered[A]]:
    """A unary call: its caller has this scope, it has a deadline, and what goes wrong in it has a name.

    Its message is read here (see receiving.py), so what the library gives for it is passed over. Of a call
    that may outlive its key the service is told by `dropped` which answer will not be sent.
    """

    def wrap(method: Unary[Q, A]) -> Registered[A]:
        route = method.__qualname__.replace("Service.", "/")

        @wraps(method)
        async def call(self: Any, unread: Any, context: Context) -> A:
            async with answering(context):
                gate: Gate = self.gate
                with gate.door.serving(route) as served, counting_refusals(served):
                    caller = await gate.admit(context, scope)
                    with gate.passing(caller, kind):
                        if context.time_remaining() is None:
                            raise TurnedAway(
                                NO_DEADLINE, "this call has no deadline; give it one, such as 30 s"
                            )
                        began = monotonic()
                        async with gate.message(context, caller, kind) as request:
                            if monotonic() - began > AGAIN_SECONDS:
                                caller = await gate.admit(context, scope)
                            served.received = bytes_of(request)
                            work = method(self, request, caller, context)
                            del request  # a call that waits for long does not hold it
                            if kind in LONG:
                                unsent = None if dropped is None else partial(dropped, self)
                                work = gate.while_known(context, work, scope, dropped=unsent)
                            answer = await work
                            served.sent = bytes_of(answer)
                            return answer
            raise AssertionError("answering always raises")

        return call

    return wrap
