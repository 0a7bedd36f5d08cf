"""The gate: who is calling, and whether the call has what every call must have."""

import hashlib
import ssl
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Final, TypeVar

import grpc

from faultline.access import Caller, Doorman
from faultline.errors import NotAuthenticated
from faultline.remote.serving.config import GrpcConfig, TlsFiles
from faultline.remote.serving.problems import NO_DEADLINE, STOPPING, TOO_MANY, TurnedAway, answering
from faultline.server.config import is_loopback

Context = grpc.aio.ServicerContext[Any, Any]
Q = TypeVar("Q")
A = TypeVar("A")

FORM: Final = "bearer "
NOT_A_KEY: Final = "not in the form `Bearer flk_...`"


class Gate:
    """Lets calls in: by key, within limits, while the server is not stopping."""

    def __init__(self, doorman: Doorman, config: GrpcConfig) -> None:
        self._doorman = doorman
        self._config = config
        self._revoked = Revoked(config.tls)
        self._calls = 0
        self.closed = False

    async def admit(self, context: Context, scope: str) -> Caller:
        """Whoever makes this call, if they may do such things at all."""
        caller = await self.who(context)
        caller.require(scope)
        return caller

    async def who(self, context: Context) -> Caller:
        """Whoever makes this call; NotAuthenticated if nobody knows."""
        self._revoked.check(context)
        return await self._doorman.who(presented(context), loopback=self._is_here(context))

    def _is_here(self, context: Context) -> bool:
        return not self._config.behind_proxy and is_loopback(host_of(context.peer()))

    def enter(self) -> None:
        """Count a unary call in."""
        if self.closed:
            raise TurnedAway(STOPPING, "the server is stopping; ask again, another one answers")
        if self._calls >= self._config.calls_at_once_max:
            raise TurnedAway(TOO_MANY, f"{self._calls} calls are being served; ask again in a moment")
        self._calls += 1

    def leave(self) -> None:
        """Count it out."""
        self._calls -= 1


def presented(context: Context) -> str | None:
    """The key as it was shown; more than one, or another form, is a key that opens nothing."""
    # A header in any case of letters arrives in small ones; a binary one would have another name.
    shown = [str(value) for name, value in context.invocation_metadata() or () if name == "authorization"]
    if not shown:
        return None
    if len(shown) > 1 or not shown[0].lower().startswith(FORM):
        return NOT_A_KEY
    return shown[0][len(FORM) :].strip() or NOT_A_KEY


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


class Revoked:
    """Client certificates that open nothing any more, by their fingerprints."""

    def __init__(self, tls: TlsFiles | None) -> None:
        self._file = None if tls is None else tls.revoked
        self._read_at = 0
        self._prints: frozenset[str] = frozenset()

    def check(self, context: Context) -> None:
        """Refuse a call over a connection whose certificate was revoked."""
        if self._file is None:
            return
        for pem in context.auth_context().get("x509_pem_cert", ()):
            der = ssl.PEM_cert_to_DER_cert(pem.decode())
            if hashlib.sha256(der).hexdigest() in self._listed():
                raise NotAuthenticated("this certificate opens nothing: it was revoked; ask for another")

    def _listed(self) -> frozenset[str]:
        assert self._file is not None
        changed_at = self._file.stat().st_mtime_ns
        if changed_at != self._read_at:
            lines = self._file.read_text().splitlines()
            # `openssl x509 -fingerprint` prints `sha256 Fingerprint=AA:BB:...`.
            self._prints = frozenset(
                line.rpartition("=")[2].strip().replace(":", "").lower() for line in lines
            )
            self._read_at = changed_at
        return self._prints


Unary = Callable[[Any, Q, Caller, Context], Awaitable[A]]


def unary(scope: str) -> Callable[[Unary[Q, A]], Callable[[Any, Q, Context], Awaitable[A]]]:
    """A unary call: its caller has this scope, it has a deadline, and what goes wrong in it has a name."""

    def wrap(method: Unary[Q, A]) -> Callable[[Any, Q, Context], Awaitable[A]]:
        @wraps(method)
        async def call(self: Any, request: Q, context: Context) -> A:
            async with answering(context):
                gate: Gate = self.gate
                gate.enter()
                try:
                    caller = await gate.admit(context, scope)
                    if context.time_remaining() is None:
                        raise TurnedAway(NO_DEADLINE, "this call has no deadline; give it one, such as 30 s")
                    return await method(self, request, caller, context)
                finally:
                    gate.leave()
            raise AssertionError("answering always raises")

        return call

    return wrap
