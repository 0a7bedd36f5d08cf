"""AnsweringProtocol: the answers of one connection, in their order, up to its close.

Requests may follow each other without waiting. When one of them is refused, earlier ones may have been
carried out already: they are answered, and the connection closes after the last of these answers.
"""

import asyncio
from typing import Any

from faultline.errors import ConfigError
from faultline.server.http.guard.request_guard import TAKEN
from faultline.server.http.guard.request_rates import STREAM, budget_of
from faultline.server.http.problem_document import Problem
from faultline.server.limits import Limits
from faultline.server.problems import ProblemKind
from faultline.server.traffic_stats import TrafficStats

Base: Any
try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Base
except ImportError as error:
    # uvicorn has a second parser, h11. It accepts what this one refuses (a length beside chunks, bare line
    # feeds), and the bounds of BoundedProtocol need callbacks that it does not make.
    raise ConfigError(
        f"the server needs httptools: pip install 'faultline-queue[server]' ({error})"
    ) from error


class AnsweringProtocol(Base):  # type: ignore[misc]
    """The sending side of a connection: answers, refusals, clients that do not read, the close."""

    limits = Limits()
    traffic: TrafficStats | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._heard_all = False
        """True once further bytes are ignored."""
        self._serving: Any = None
        """The request under way; `cycle` is the newest, and may wait behind it."""
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_read()
        self._drop_answers()
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """Whether no request of this connection is under way."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def refuse(self, kind: ProblemKind) -> None:
        """Send the reason and close; behind unfinished answers the connection closes without it."""
        if self.transport.is_closing() or self._heard_all:
            return
        if self.traffic is not None:
            self.traffic.refused(kind.code)
        if not self._close_behind_answers():
            if not self._answer_has_begun:
                self._write_refusal(kind)
            self.hang_up()
        elif _streams(self._serving):
            self.hang_up()  # it would not end by itself

    def hang_up(self) -> None:
        """Close, with a bound on the wait for the client to read the last bytes."""
        self._drop_answers()
        self.transport.close()
        self.loop.call_later(self.limits.linger_seconds_max, self.transport.abort)

    def cut(self) -> None:
        """Close at once, without an answer."""
        self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read_timer = self.loop.call_later(self.limits.send_seconds_max, self.transport.abort)

    def resume_writing(self) -> None:
        self._is_read()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        self.transport.abort()  # idle, or it would have read its answer by now

    def _is_read(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _close_behind_answers(self) -> bool:
        """Take no more requests, and close once the whole ones are answered; False if there is none."""
        self._heard_all = True
        self.flow.resume_reading()  # unread bytes at the close would take the answers back
        owed = [cycle for cycle in self._unanswered() if not cycle.more_body]
        if owed:
            owed[-1].keep_alive = False
        return bool(owed)

    def _unanswered(self) -> list[Any]:
        """Requests without a whole answer, in their order; only the last can be without a whole body."""
        known = [self._serving, *(cycle for cycle, _ in reversed(self.pipeline))]
        return [cycle for cycle in known if cycle is not None and not cycle.response_complete]

    @property
    def _answer_has_begun(self) -> bool:
        return not self.is_idle and bool(self._serving.response_started)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._serving = cycle
        cycle.scope[TAKEN] = self.flow.drain, self.transport.abort
        if self._heard_all and _streams(cycle):
            self.hang_up()
        else:
            super()._start_asgi_task(cycle, app)

    def _drop_answers(self) -> None:
        """Tell every request that no more can be written: uvicorn tells only the newest."""
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()

    def _write_refusal(self, kind: ProblemKind) -> None:
        body = Problem(kind, "").body("-")
        head = b"HTTP/1.1 %d Refused\r\ncontent-type: application/problem+json\r\n" % kind.status
        self.transport.write(head + b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body))


def _streams(cycle: Any) -> bool:
    return budget_of(cycle.scope["path"]) == STREAM
