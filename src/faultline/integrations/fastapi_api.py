"""The HTTP API of Faultline as a part of your own ASGI app, behind Faultline's keys or your own users."""

import inspect
import secrets
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final
from weakref import WeakKeyDictionary

from starlette.exceptions import HTTPException
from starlette.requests import Request

from faultline.app import Faultline
from faultline.errors import ConfigError, NotAuthenticated
from faultline.server.auth import CACHE_SECONDS_MAX, Authenticator, Caller, Credentials
from faultline.server.http import ApiConfig, create_app
from faultline.server.http.api_context import LOOPBACK_HOSTS
from faultline.server.limits import Limits
from faultline.store.pool import AsyncStore

Authorize = Callable[[Request], Caller | Awaitable[Caller | None] | None]
"""From a request, who is asking and what they may do; None for those who may do nothing."""

TICKET_BYTES: Final = 32


def api(
    app: Faultline,
    *,
    authorize: Authorize | None = None,
    hosts: Iterable[str] = (),
    limits: Limits | None = None,
) -> "MountedApi":
    """The HTTP API of `faultline server` as an ASGI app, to be mounted in your own.

        def staff(request: Request) -> Caller | None:
            user = request.session.get("user")
            return Caller(user, frozenset({"read", "operate"}), None) if user in STAFF else None

        web.mount("/faultline", api(app, authorize=staff))

    Without `authorize` each request shows an API key, as for `faultline server`. With it, your function says
    who is asking: scopes are enqueue, read, operate and admin, queues a set of names or None for all.
    It answers None with 403, and may raise an HTTPException of its own. It may be async, and is asked again
    while a stream or a long poll lasts. Pages of other origins are refused in any case.

    `hosts` names the allowed values of the Host header; without it any is taken, since your app has its own
    rules. The connections are the app's own.
    """
    return MountedApi(app, authorize, tuple(hosts), limits or Limits())


class MountedApi:
    """An ASGI app; made by `api`."""

    def __init__(
        self, app: Faultline, authorize: Authorize | None, hosts: tuple[str, ...], limits: Limits
    ) -> None:
        self._app = app
        self._admissions = None if authorize is None else Admissions(authorize)
        self._config = ApiConfig(
            hosts=(*LOOPBACK_HOSTS, *hosts) if hosts else LOOPBACK_HOSTS,
            any_host_with_key=not hosts, limits=limits,
        )  # fmt: skip
        self._by_loop: WeakKeyDictionary[AbstractEventLoop, tuple[AsyncStore, Any]] = WeakKeyDictionary()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        inner = self._of_this_loop()
        if scope["type"] != "http" or self._admissions is None:
            await inner(scope, receive, send)
            return
        with self._admissions.admitting(Request(scope)) as (admission, key):
            await admission.check()
            await inner(_shown(scope, key), receive, send)

    def _of_this_loop(self) -> Any:
        """Made at the first request: a pool is of one loop, and a closed app may be used again."""
        store = self._app._stores.of_this_loop()
        made_for, inner = self._by_loop.get(loop := get_running_loop(), (None, None))
        if made_for is not store:
            inner = create_app(store, self._admissions or Authenticator(store), self._config)
            self._by_loop[loop] = (store, inner)
        return inner


class Admission:
    """One request, and the caller that it was let in as."""

    def __init__(self, authorize: Authorize, request: Request) -> None:
        self._authorize = authorize
        self._request = request
        self._caller: Caller | None = None
        self._until = 0.0

    async def check(self) -> None:
        """Ask for the first time: what the function raises is the answer of the app that it belongs to."""
        self._caller = await self._asked()
        if self._caller is None:
            raise HTTPException(403, "not allowed here")

    async def caller(self) -> Caller:
        """The caller, asked for again when the last answer is too old for a request that lasts."""
        if monotonic() >= self._until:
            try:
                self._caller = await self._asked()
            except HTTPException:
                self._caller = None
        if self._caller is None:
            raise NotAuthenticated("this caller is not let in any more")
        return self._caller

    async def _asked(self) -> Caller | None:
        answer = self._authorize(self._request)
        caller = await answer if inspect.isawaitable(answer) else answer
        if caller is not None and not isinstance(caller, Caller):
            raise ConfigError(f"authorize answers with a Caller, or None; got {type(caller).__name__}")
        self._until = monotonic() + CACHE_SECONDS_MAX
        return caller


class Admissions(Authenticator):
    """Lets requests in by the word of a function, in place of keys.

    Each request is passed on with a key of its own, which is good for as long as the request lasts.
    """

    def __init__(self, authorize: Authorize) -> None:
        self._authorize = authorize
        self._open: dict[str, Admission] = {}

    @contextmanager
    def admitting(self, request: Request) -> Iterator[tuple[Admission, str]]:
        """The admission of a request, and the key that stands for it."""
        key = secrets.token_hex(TICKET_BYTES)
        self._open[key] = admission = Admission(self._authorize, request)
        try:
            yield admission, key
        finally:
            del self._open[key]

    async def known(self, shown: Credentials) -> Caller:
        admission = self._open.get(shown.key or "")
        if admission is None:
            raise NotAuthenticated("this request was not let in")
        return await admission.caller()

    async def refusal(self, shown: Credentials, error: NotAuthenticated) -> Exception:
        return error


def _shown(scope: Any, key: str) -> Any:
    """The request as the API sees it: with the key in place of what it showed to the app around."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
    return {
        **scope,
        "headers": [*headers, (b"authorization", b"Bearer " + key.encode())],
        "state": dict(scope.get("state") or {}),
    }
