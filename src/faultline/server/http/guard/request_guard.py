"""RequestGuard: the first step of every request. It checks the caller, the size and the time."""

import asyncio
import contextlib
import logging
from functools import partial
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from faultline.errors import NotAuthenticated, ServerUnavailable
from faultline.server.auth import Caller
from faultline.server.auth.key_lifetime import while_known
from faultline.server.http.api_context import ApiContext
from faultline.server.http.guard.bodies import Bodies, replayed
from faultline.server.http.guard.request_head import RequestHead
from faultline.server.http.guard.request_rates import budget_of, rate_limiter
from faultline.server.http.guard.responder import Responder
from faultline.server.http.problem_document import Problem, problem_of
from faultline.server.http.submit.fast_path import SUBMIT, is_fast, submit_one
from faultline.server.outage_report import outage_mark
from faultline.server.problems import CROSS_ORIGIN, MALFORMED, NOT_JSON, WRONG_HOST, RequestRefused
from faultline.server.throttling.payload_budget import PayloadShare
from faultline.server.throttling.time_budget import TimeBudget
from faultline.store.connection_turns import taking

SUBMIT_MANY: Final = f"{SUBMIT}/batch"

log = logging.getLogger("faultline.server")

OPEN: Final = frozenset({"/healthz", "/readyz", "/health"})
"""Paths open to every caller, under any host name: probes have no key, and get only yes or no."""

HEARD_OUT: Final = "faultline.heard_out"
"""Set in the scope of a refused request whose body is being dropped: its connection may be closed."""

OTHER: Final = "other"
"""The route of a request that was refused before it had one."""

ADMITTED: Final = "faultline.admitted"
"""Set in the scope of an admitted request: its connection has a valid key, or comes from this machine."""

TAKEN: Final = "faultline.taken"
"""In the scope of a request: waits until its connection has taken what was written; and cuts it."""

LOOK_AGAIN_SECONDS: Final = 1.0
"""A request whose body took longer has its key checked again before any work."""


class RequestGuard:
    """ASGI middleware around the whole API."""

    def __init__(self, app: Any, context: ApiContext) -> None:
        self._app = app
        self._context = context
        self._limits = context.config.limits
        self._rate_limiter = rate_limiter(self._limits)
        self._authenticator = context.authenticator
        self._bodies = Bodies(self._limits)
        context.traffic.in_hand = self._rate_limiter.by_kind

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = RequestHead(scope)
        answer = Responder(send, head)
        with self._context.traffic.serving(OTHER) as served:
            try:
                await self._let_in(head, receive, answer)
            except Exception as error:
                problem = problem_of(error)
                served.refuse(problem.kind.status, problem.kind.code)
                await self._refuse(head, receive, answer, error, problem)
            finally:
                served.route = _route_of(head)
                served.received, served.sent = head.body_bytes, answer.sent

    async def _let_in(self, head: RequestHead, receive: Any, answer: Responder) -> None:
        head.check()
        if head.is_safe and head.has_body:
            raise RequestRefused(MALFORMED, f"{head.method} takes no body")
        if head.route in OPEN and head.is_safe:
            await self._app(head.scope, receive, answer.send)
            return
        key = head.bearer
        self._check_host(head, key)
        self._check_origin(head)
        if not head.is_safe:
            _check_media_type(head)
        budget = TimeBudget(self._limits.answer_seconds_max)
        try:
            async with budget.spent():
                caller = await self._who(head)
        except TimeoutError:
            raise ServerUnavailable("the key could not be looked up in time; nothing was done") from None
        head.scope[ADMITTED] = True
        with self._rate_limiter.passing(caller.actor, budget_of(head.route)), taking(name=caller.actor):
            await self._serve(head, caller, receive, answer, budget)

    async def _serve(
        self, head: RequestHead, caller: Caller, receive: Any, answer: Responder, budget: TimeBudget
    ) -> None:
        scope = head.scope
        scope.setdefault("state", {})["caller"] = caller
        # Streams, long polls and large bodies may outlive their key.
        look = scope["state"]["who"] = partial(self._authenticator.known, head.credentials)
        if head.is_safe:
            try:
                await self._look_up(head, receive, answer, budget)
            finally:
                await self._until_read(head, answer)
            return
        if head.route in (SUBMIT, SUBMIT_MANY) and head.method == "POST":
            caller.require("enqueue")
        elif not (caller.may("operate") or caller.may("enqueue")):
            # A request without rights to write is refused, or gets a 404, without its body.
            await self._app(scope, replayed(b"", receive), answer.send)
            return
        most = self._limits.batch_bytes_max if head.route == SUBMIT_MANY else self._limits.body_bytes_max
        began = monotonic()
        async with self._bodies.read(head, receive, most, caller.actor) as body:
            answer.body_was_read = True
            head.body_bytes = len(body)
            if monotonic() - began > LOOK_AGAIN_SECONDS:
                caller = scope["state"]["caller"] = await look()
            async with budget.spent():
                if is_fast(head):
                    await submit_one(self._context, head, caller, body, answer)
                else:
                    await self._app(scope, replayed(body, receive), answer.send)

    async def _look_up(self, head: RequestHead, receive: Any, answer: Responder, budget: TimeBudget) -> None:
        """Serve a request that changes nothing; long polls and streams have time limits of their own."""
        served = self._app(head.scope, receive, answer.send)
        match budget_of(head.route):
            case "wait":
                await while_known(served, head.scope["state"]["who"])
            case "stream":
                await served
            case _:
                try:
                    async with budget.spent():
                        await served
                except TimeoutError:
                    raise ServerUnavailable("the database did not answer in time") from None

    async def _until_read(self, head: RequestHead, answer: Responder) -> None:
        """Keep the room of an answer until its connection has taken it; one that takes too long is cut."""
        share: PayloadShare | None = head.scope["state"].pop("answer_share", None)
        if share is None:
            return
        taken, cut = head.scope.get(TAKEN, (None, None))
        share.shrink(answer.sent)
        try:
            if taken is not None:
                async with share.being_written(self._limits.send_seconds_max):
                    await taken()
        except TimeoutError:
            cut()
        finally:
            share.release()

    async def _who(self, head: RequestHead) -> Caller:
        """The caller; an invalid key is counted, and slowed down where there are many."""
        shown = head.credentials
        try:
            return await self._authenticator.known(shown)
        except NotAuthenticated as error:
            head.scope[HEARD_OUT] = True  # a pause must not hold a place that other requests need
            raise await self._authenticator.refusal(shown, error) from None

    def _check_host(self, head: RequestHead, key: str | None) -> None:
        """Refuse a foreign host name that resolves to this server: a page in a browser could use it."""
        config = self._context.config
        name = head.host.removesuffix(".")
        if name in config.hosts or (key is not None and config.any_host_with_key):
            return
        if head.is_at(name):
            return
        raise RequestRefused(WRONG_HOST, f"the Host header says {head.host[:100]!a}")

    def _check_origin(self, head: RequestHead) -> None:
        origin = head.headers.get(b"origin")
        site = head.headers.get(b"sec-fetch-site", "none")
        if origin is not None and not _is_same_origin(origin, head):
            raise RequestRefused(CROSS_ORIGIN, f"the page is from {origin[:100]!a}")
        if site not in ("same-origin", "none"):
            raise RequestRefused(CROSS_ORIGIN, f"Sec-Fetch-Site says {site[:30]!a}")

    async def _refuse(
        self, head: RequestHead, receive: Any, answer: Responder, error: Exception, problem: Problem
    ) -> None:
        if problem.kind.status >= 500 and not isinstance(error, RequestRefused):
            unforeseen = problem.kind.code == "unforeseen"
            log.error(
                "request %s: %s: %s",
                head.id,
                type(error).__name__,
                error,
                exc_info=error if unforeseen else None,
                extra=outage_mark(error),
            )
        if answer.started:
            raise error  # half an answer is sent: closing the connection is the only signal left
        await self._tell(head, receive, answer, problem)

    async def _tell(self, head: RequestHead, receive: Any, answer: Responder, problem: Problem) -> None:
        body = problem.body(head.id)
        headers = problem.raw_headers(len(body))
        if not head.has_body or answer.body_was_read:
            await answer.whole(problem.kind.status, headers, body)
            return
        # The client may still be sending. A close during its send would take the answer back from it.
        await answer.begin(problem.kind.status, [*headers, (b"connection", b"close")], body)
        head.scope[HEARD_OUT] = True
        left = self._limits.linger_bytes_max
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.linger_seconds_max):
                while left > 0 and (message := await receive()).get("more_body"):
                    left -= len(message.get("body", b""))
        await answer.end()


def _route_of(head: RequestHead) -> str:
    """The route as written in the API: a metric's label with a job's id would have no bound."""
    if is_fast(head):
        return "POST /jobs"
    path = getattr(head.scope.get("route"), "path", None)
    return OTHER if path is None else f"{head.method} {path.removeprefix('/api/v1')}"


def _check_media_type(head: RequestHead) -> None:
    said = head.headers.get(b"content-type", "").partition(";")[0].strip().lower()
    if said != "application/json":
        raise RequestRefused(
            NOT_JSON, f"the Content-Type is {said[:60]!a}" if said else "there is no Content-Type"
        )
    coding = head.headers.get(b"content-encoding", "identity").lower()
    if coding != "identity":
        raise RequestRefused(NOT_JSON, f"the Content-Encoding is {coding[:30]!a}")


def _is_same_origin(origin: str, head: RequestHead) -> bool:
    try:
        there = urlsplit(origin)
    except ValueError:
        return False
    return there.netloc.lower() == head.headers.get(b"host", "").lower() and bool(there.netloc)
