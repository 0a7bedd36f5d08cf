"""The gate: every request passes here first. Who it is, what it may weigh, how long it may take."""

import asyncio
import contextlib
import logging
from functools import partial
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from faultline.access import Caller
from faultline.api.answers import Answer
from faultline.api.asked import Asked
from faultline.api.bodies import Bodies, replayed
from faultline.api.desk import Desk
from faultline.api.problems import (
    CROSS_ORIGIN,
    MALFORMED,
    NOT_JSON,
    TOO_MANY,
    WRONG_HOST,
    Problem,
    Refused,
    problem_of,
)
from faultline.api.rates import kind_of, turnstile
from faultline.api.submit import SUBMIT, SUBMIT_MANY, submit_one
from faultline.errors import NotAuthenticated, ServerUnavailable
from faultline.server.config import is_loopback
from faultline.server.lasting import while_known
from faultline.server.outage import outage_mark
from faultline.server.patience import Patience
from faultline.server.wrong_keys import WrongKeys
from faultline.store.turns import taking

log = logging.getLogger("faultline.server")

OPEN: Final = frozenset({"/healthz", "/readyz", "/health"})
"""Answers to whoever asks, by whatever name: probes know neither keys nor names, and learn only yes or no."""

HEARD_OUT: Final = "faultline.heard_out"
"""In the scope of a request that was refused and whose body is being thrown away: its connection may go."""

OTHER: Final = "other"
"""The route of a request that was refused before it had one."""

ADMITTED: Final = "faultline.admitted"
"""In the scope of a request that was let in: its connection shows a key, or comes from this machine."""


LOOK_AGAIN_SECONDS: Final = 1.0
"""The key of a request whose body took longer is looked at again before anything is done for it."""


class Gate:
    """ASGI middleware around the whole API."""

    def __init__(self, app: Any, desk: Desk) -> None:
        self._app = app
        self._desk = desk
        self._limits = desk.config.limits
        self._turnstile = turnstile(self._limits)
        self._wrong_keys = WrongKeys(self._limits.bad_keys_per_second, "HTTP")
        self._bodies = Bodies(self._limits)
        desk.door.in_hand = self._turnstile.by_kind

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = Asked(scope)
        answer = Answer(send, asked)
        with self._desk.door.serving(OTHER) as served:
            try:
                await self._let_in(asked, receive, answer)
            except Exception as error:
                problem = problem_of(error)
                served.refuse(problem.kind.status, problem.kind.code)
                await self._refuse(asked, receive, answer, error, problem)
            finally:
                served.route = _route_of(asked)
                served.received, served.sent = asked.body_bytes, answer.sent

    async def _let_in(self, asked: Asked, receive: Any, answer: Answer) -> None:
        asked.check()
        if asked.is_safe and asked.has_body:
            raise Refused(MALFORMED, f"{asked.method} takes no body")
        if asked.route in OPEN and asked.is_safe:
            await self._app(asked.scope, receive, answer.send)
            return
        key = asked.bearer
        self._check_host(asked, key)
        self._check_origin(asked)
        if not asked.is_safe:
            _check_media_type(asked)
        patience = Patience(self._limits.answer_seconds_max)
        try:
            async with patience.spent():
                caller = await self._who(asked, key)
        except TimeoutError:
            raise ServerUnavailable("the key could not be looked up in time; nothing was done") from None
        asked.scope[ADMITTED] = True
        with self._turnstile.passing(caller.actor, kind_of(asked.route)), taking(name=caller.actor):
            await self._serve(asked, caller, receive, answer, patience)

    async def _serve(
        self, asked: Asked, caller: Caller, receive: Any, answer: Answer, patience: Patience
    ) -> None:
        scope = asked.scope
        scope.setdefault("state", {})["caller"] = caller
        # Streams, long polls and large bodies may live longer than their key.
        look = scope["state"]["who"] = partial(self._known, asked, asked.bearer)
        if asked.is_safe:
            await self._look_up(asked, receive, answer, patience)
            return
        if asked.route in (SUBMIT, SUBMIT_MANY) and asked.method == "POST":
            caller.require("enqueue")
        elif not (caller.may("operate") or caller.may("enqueue")):
            # It may write nothing: it is refused, or told that there is no such path, without its body.
            await self._app(scope, replayed(b"", receive), answer.send)
            return
        most = self._limits.batch_bytes_max if asked.route == SUBMIT_MANY else self._limits.body_bytes_max
        began = monotonic()
        async with self._bodies.read(asked, receive, most, caller.actor) as body:
            answer.body_was_read = True
            asked.body_bytes = len(body)
            if monotonic() - began > LOOK_AGAIN_SECONDS:
                caller = scope["state"]["caller"] = await look()
            if asked.route == SUBMIT and asked.method == "POST":
                # Past the router and its models: they would cost the busiest door half of its speed.
                async with patience.spent():
                    await submit_one(self._desk, asked, caller, body, answer)
            else:
                async with patience.spent():
                    await self._app(scope, replayed(body, receive), answer.send)

    async def _look_up(self, asked: Asked, receive: Any, answer: Answer, patience: Patience) -> None:
        """Serve a request that changes nothing; long polls and streams last for as long as they say."""
        served = self._app(asked.scope, receive, answer.send)
        match kind_of(asked.route):
            case "wait":
                await while_known(served, asked.scope["state"]["who"])
            case "stream":
                await served
            case _:
                try:
                    async with patience.spent():
                        await served
                except TimeoutError:
                    raise ServerUnavailable("the database did not answer in time") from None

    async def _who(self, asked: Asked, key: str | None) -> Caller:
        """The caller; a key that opens nothing is noted, and slowed down where there are many."""
        try:
            return await self._known(asked, key)
        except NotAuthenticated:
            asked.scope[HEARD_OUT] = True  # a pause must not hold a place that others want
            if key is not None and await self._wrong_keys.are_too_many(asked.peer, key):
                raise Refused(TOO_MANY, "too many wrong keys from this address", 1) from None
            raise

    async def _known(self, asked: Asked, key: str | None) -> Caller:
        config = self._desk.config
        trusted = config.trust_loopback and not config.behind_proxy
        here = trusted and not asked.passed_on and is_loopback(asked.peer)
        return await self._desk.doorman.who(key, loopback=here)

    def _check_host(self, asked: Asked, key: str | None) -> None:
        """Refuse a name that somebody else's DNS points here: by it a page could reach us from a browser."""
        config = self._desk.config
        name = asked.host.removesuffix(".")
        if name in config.hosts or (key is not None and config.any_host_with_key):
            return
        if asked.is_at(name):
            return
        raise Refused(WRONG_HOST, f"the Host header says {asked.host[:100]!a}")

    def _check_origin(self, asked: Asked) -> None:
        origin = asked.headers.get(b"origin")
        site = asked.headers.get(b"sec-fetch-site", "none")
        if origin is not None and not _is_same_origin(origin, asked):
            raise Refused(CROSS_ORIGIN, f"the page is from {origin[:100]!a}")
        if site not in ("same-origin", "none"):
            raise Refused(CROSS_ORIGIN, f"Sec-Fetch-Site says {site[:30]!a}")

    async def _refuse(
        self, asked: Asked, receive: Any, answer: Answer, error: Exception, problem: Problem
    ) -> None:
        if problem.kind.status >= 500 and not isinstance(error, Refused):
            unforeseen = problem.kind.code == "unforeseen"
            log.error(
                "request %s: %s: %s",
                asked.id,
                type(error).__name__,
                error,
                exc_info=error if unforeseen else None,
                extra=outage_mark(error),
            )
        if answer.started:
            raise error  # half an answer is out: cutting the connection is the only word left
        await self._tell(asked, receive, answer, problem)

    async def _tell(self, asked: Asked, receive: Any, answer: Answer, problem: Problem) -> None:
        body = problem.body(asked.id)
        headers = problem.raw_headers(len(body))
        if not asked.has_body or answer.body_was_read:
            await answer.whole(problem.kind.status, headers, body)
            return
        # It may still be sending. Whoever hangs up on a sender takes the answer back from it.
        await answer.begin(problem.kind.status, [*headers, (b"connection", b"close")], body)
        asked.scope[HEARD_OUT] = True
        left = self._limits.linger_bytes_max
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.linger_seconds_max):
                while left > 0 and (message := await receive()).get("more_body"):
                    left -= len(message.get("body", b""))
        await answer.end()


def _route_of(asked: Asked) -> str:
    """The route as it is written in the API: a label with a job's id in it would have no bound."""
    if asked.route == SUBMIT and asked.method == "POST":
        return "POST /jobs"
    path = getattr(asked.scope.get("route"), "path", None)
    return OTHER if path is None else f"{asked.method} {path.removeprefix('/api/v1')}"


def _check_media_type(asked: Asked) -> None:
    said = asked.headers.get(b"content-type", "").partition(";")[0].strip().lower()
    if said != "application/json":
        raise Refused(NOT_JSON, f"the Content-Type is {said[:60]!a}" if said else "there is no Content-Type")
    coding = asked.headers.get(b"content-encoding", "identity").lower()
    if coding != "identity":
        raise Refused(NOT_JSON, f"the Content-Encoding is {coding[:30]!a}")


def _is_same_origin(origin: str, asked: Asked) -> bool:
    try:
        there = urlsplit(origin)
    except ValueError:
        return False
    return there.netloc.lower() == asked.headers.get(b"host", "").lower() and bool(there.netloc)
