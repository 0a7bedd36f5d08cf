"""CallGuard: identifies the caller of each call, and checks what every call must have."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial, wraps
from time import monotonic
from typing import Any, Final, TypeVar

import grpc

from faultline.errors import NotAuthenticated
from faultline.server.auth import Authenticator, Caller, Credentials
from faultline.server.auth.key_lifetime import while_known
from faultline.server.config import is_of_a_proxy
from faultline.server.grpc.call_status import answering
from faultline.server.grpc.grpc_config import GrpcConfig
from faultline.server.grpc.guard.connection_limits import Connections
from faultline.server.grpc.guard.message_reader import MessageReader, ReadSlot
from faultline.server.listener.revoked_certificates import RevokedCertificates
from faultline.server.problems import NO_DEADLINE, STOPPING, RequestRefused, kind_of
from faultline.server.throttling.rate_limit import VITAL, RateBudget, RateLimiter
from faultline.server.traffic_stats import ServedRequest, TrafficStats
from faultline.store.connection_turns import Lane, taking
from faultline.telemetry.events import has_listeners

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
"""A message that took longer may have outlived its key: the key is checked once more."""

NOT_A_KEY: Final = "not in the form `Bearer flk_...`"


class CallGuard:
    """Admits calls: by key, within limits, while the server is not stopping."""

    def __init__(self, authenticator: Authenticator, config: GrpcConfig) -> None:
        self.connections = Connections(config)
        self.traffic = TrafficStats("grpc")
        self.traffic.connections = lambda: len(self.connections)
        self._authenticator = authenticator
        self._config = config
        tls = config.tls
        self._revoked = None if tls is None or tls.revoked is None else RevokedCertificates(tls.revoked)
        self.rate_limiter = _rate_limiter(config)
        self.traffic.in_hand = self.rate_limiter.by_kind
        self.closed = False
        places = (config.messages_at_once_max, config.messages_at_once_per_key, config.message_seconds_max)
        self._receiving = {VITAL: MessageReader(*places), CALL: MessageReader(*places)}
        """Calls that keep jobs running are read in places of their own."""

    async def admit(self, context: Context, scope: str) -> Caller:
        """The caller, if its key has this scope."""
        caller = await self.who(context)
        caller.require(scope)
        return caller

    async def who(self, context: Context) -> Caller:
        """The caller; an invalid key is counted, and slowed down where there are many."""
        try:
            caller = await self.known(context)
        except NotAuthenticated as error:
            raise await self._authenticator.refusal(_shown(context), error) from None
        self.connections.admit(context.peer())
        return caller

    async def known(self, context: Context) -> Caller:
        """The caller; NotAuthenticated for an invalid key or certificate."""
        self.look_at_the_certificate(context)
        return await self._authenticator.known(_shown(context))

    def look_at_the_certificate(self, context: Context) -> None:
        """Refuse a client whose certificate was revoked."""
        revoked = self._revoked
        if revoked is not None and any(revoked.lists(der) for der in shown_certificates(context)):
            raise NotAuthenticated("this certificate opens nothing: it was revoked; ask for another")

    @contextmanager
    def passing(self, caller: Caller, kind: str) -> Iterator[None]:
        """Count a call for as long as it takes, and have its database calls take their turn."""
        if self.closed:
            raise RequestRefused(STOPPING, "the server is stopping; ask again, another one answers")
        lane: Lane = "vital" if kind == VITAL else "plain"
        with self.rate_limiter.passing(caller.actor, kind), taking(lane, caller.actor):
            yield

    async def while_known(
        self,
        context: Context,
        work: Awaitable[A],
        scope: str | None = None,
        seconds_max: float | None = None,
        dropped: Callable[[A], None] | None = None,
    ) -> A:
        """Run work that may take long, for as long as its key is valid."""

        async def look() -> None:
            caller = await self.known(context)
            if scope is not None:
                caller.require(scope)

        return await while_known(work, look, self._config.key_check_seconds, seconds_max, dropped)

    def message(self, context: Context, caller: Caller, kind: str) -> AbstractAsyncContextManager[Any]:
        """The message of a unary call, for as long as the block lasts."""
        receiving = self._receiving[VITAL if kind == VITAL else CALL]
        return receiving.message(context, caller.actor, lasting=kind in LONG)

    def place(self, caller: Caller) -> ReadSlot:
        """A place for a large message of a session, still to be taken."""
        return self._receiving[VITAL].place(caller.actor)

    async def pace(self, caller: Caller, kind: str) -> None:
        """Wait until one more message of a session is within its key's rate."""
        while not self.rate_limiter.has_turn(caller.actor, kind):  # noqa: ASYNC110 - a rate has no event to wait for
            await asyncio.sleep(PACE_SECONDS)


def _rate_limiter(config: GrpcConfig) -> RateLimiter:
    budgets = {
        CALL: RateBudget(config.calls_at_once_max, config.calls_at_once_per_key),
        POLL: RateBudget(config.polls_max, config.polls_per_key),
        WAIT: RateBudget(config.waits_max, config.waits_per_key),
        VITAL: RateBudget(config.vital_at_once_max, config.vital_at_once_per_key),
    }
    return RateLimiter(budgets, config.calls_per_second_per_key)


def _shown(context: Context) -> Credentials:
    key = presented(context)
    passed_on = key is None and was_passed_on(context)  # with a key, nothing depends on the address
    return Credentials("gRPC", key, host_of(context.peer()) or "", passed_on)


def presented(context: Context) -> str | None:
    """The key from the metadata; several keys, or another form, count as an invalid key."""
    # gRPC lowers the letters of a header's name; a binary header would have another name.
    shown = [str(value) for name, value in context.invocation_metadata() or () if name == "authorization"]
    if not shown:
        return None
    if len(shown) > 1 or not shown[0].lower().startswith(FORM):
        return NOT_A_KEY
    return shown[0][len(FORM) :].strip() or NOT_A_KEY


def was_passed_on(context: Context) -> bool:
    """Whether a proxy passed the call on: then the address is not the client's."""
    return any(is_of_a_proxy(name.encode()) for name, _ in context.invocation_metadata() or ())


def host_of(peer: str) -> str | None:
    """The address in gRPC's name of the peer.

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
def counting_refusals(served: ServedRequest) -> Iterator[None]:
    """Count the reason of a refused call in the metrics."""
    try:
        yield
    except Exception as error:
        kind = kind_of(error)
        served.refuse(kind.status, kind.code)
        raise


def bytes_of(message: Any) -> int:
    """The size of a message; nothing is measured without a listener for the metrics."""
    return int(message.ByteSize()) if has_listeners() else 0


Unary = Callable[[Any, Q, Caller, Context], Awaitable[A]]
Registered = Callable[[Any, Any, Context], Awaitable[A]]


def unary(
    scope: str, kind: str = CALL, dropped: Callable[[Any, Any], None] | None = None
) -> Callable[[Unary[Q, A]], Registered[A]]:
    """A unary call: its caller has this scope, it has a deadline, and its errors have names.

    The message is read here (see message_reader.py), so the one that the library gives is ignored. For a call
    that may outlive its key, `dropped` tells the service which answer will not be sent.
    """

    def wrap(method: Unary[Q, A]) -> Registered[A]:
        route = method.__qualname__.replace("Service.", "/")

        @wraps(method)
        async def call(self: Any, unread: Any, context: Context) -> A:
            async with answering(context):
                guard: CallGuard = self.guard
                with guard.traffic.serving(route) as served, counting_refusals(served):
                    caller = await guard.admit(context, scope)
                    with guard.passing(caller, kind):
                        if context.time_remaining() is None:
                            raise RequestRefused(
                                NO_DEADLINE, "this call has no deadline; give it one, such as 30 s"
                            )
                        began = monotonic()
                        async with guard.message(context, caller, kind) as request:
                            if monotonic() - began > AGAIN_SECONDS:
                                caller = await guard.admit(context, scope)
                            served.received = bytes_of(request)
                            work = method(self, request, caller, context)
                            del request  # a call that waits for long does not hold it
                            if kind in LONG:
                                unsent = None if dropped is None else partial(dropped, self)
                                work = guard.while_known(context, work, scope, dropped=unsent)
                            answer = await work
                            served.sent = bytes_of(answer)
                            return answer
            raise AssertionError("answering always raises")

        return call

    return wrap
