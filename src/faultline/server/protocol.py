"""uvicorn's HTTP protocol with bounds it has not: on heads and trailers of requests, and on connections.

One that sends its head too slowly, or too much of it, is refused; where there are too many, the one that was
idle for longest makes room for the newest. One that was refused and is only heard out counts as idle: else
whoever knows no key could fill the house with bodies that never end.

Trailers, the headers behind a chunked body, are of no use here: they are dropped, and their bytes counted.

Nor is another protocol. What stands behind a head that asks for one is not read as its body, so a body there
would be the next request, of which a proxy before us knows nothing. So such a head is a connection's last.

Requests may follow each other without waiting. When one of them is refused, those before it may have been
carried out already: they are answered, and the connection closes behind the last of these answers.
"""

import asyncio
import time
from collections import Counter
from typing import Any, ClassVar, Final, NoReturn

import uvicorn

from faultline.api.gate import ADMITTED, HEARD_OUT
from faultline.api.problems import (
    HEAD_TOO_LARGE,
    MALFORMED,
    OVERLOADED,
    REVOKED,
    TOO_MANY,
    TOO_SLOW,
    Kind,
    Problem,
)
from faultline.api.rates import CALL, STREAM, kind_of
from faultline.errors import ConfigError
from faultline.server.addresses import Allowance, plain
from faultline.server.doors import DoorFigures
from faultline.server.limits import Limits
from faultline.server.revoked import Revoked

Base: Any
try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Base
except ImportError as error:
    # uvicorn has a second parser, h11. It takes what this one refuses (a length beside chunks, bare line
    # feeds), and the bounds below hang on callbacks that it does not make.
    raise ConfigError(
        f"the server needs httptools: pip install 'faultline-queue[server]' ({error})"
    ) from error


LOOK_EVERY_SECONDS: Final = 5.0
"""How often an open connection's certificate is looked for among the revoked ones."""


BESIDE_HEADER: Final = len(": \r\n")
"""Bytes of a header beside its name and its value."""


class HeadRefused(Exception):
    """A request is refused for its head; it ends what the parser is doing."""


class BoundedProtocol(Base):  # type: ignore[misc]
    """One connection."""

    limits = Limits()
    revoked: Revoked | None = None
    allowance = Allowance(Limits().connections_per_address)
    door: DoorFigures | None = None
    of_address: ClassVar[Counter[str]] = Counter()

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.address = plain(self.client[0]) if self.client else ""
        self.of_address[self.address] += 1
        self._admitted = False
        self._in_head = True
        self._heard_all = False
        """Whether what else comes is not listened to."""
        self._serving: Any = None
        """The request that is being answered; `cycle` is the newest, and may wait behind it."""
        self._refused_for = MALFORMED
        """Why the parser was stopped."""
        self._ended = self._body_bytes = self._behind_body = 0
        self._admit_timer = self.loop.call_later(self.limits.unadmitted_seconds_max, self._look_who)
        self._head_bytes = 0
        self._seen_at = time.monotonic()
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._look_timer: asyncio.TimerHandle | None = None
        if self.revoked is not None:
            self._look_timer = self.loop.call_later(LOOK_EVERY_SECONDS, self._look_again, self.revoked)
        self._no_room = False
        self._expect_head()
        most = self.allowance.of(self.address)
        if most is not None and self.of_address[self.address] > most:
            self._make_room(most, [other for other in self.connections if other.address == self.address])
        elif len(self.connections) > self.limits.connections_max:
            self._make_room(self.limits.connections_max, list(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        self._is_read()
        if self._look_timer is not None:
            self._look_timer.cancel()
        self._admit_timer.cancel()
        self._drop_answers()
        self.of_address[self.address] -= 1
        if not self.of_address[self.address]:
            del self.of_address[self.address]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.revoked is not None and self._is_revoked(self.revoked):
            # In the middle of an answer a second one would be taken for its end.
            self.refuse(REVOKED) if self.is_idle else self.transport.abort()
            return
        if self._no_room:
            self.refuse(OVERLOADED)
            return
        if self._heard_all:
            return
        before = self._progress
        self._admitted = self.is_admitted
        self._seen_at = time.monotonic()
        super().data_received(data)
        self._count(data, before)

    def eof_received(self) -> bool:
        """Answer a client that has closed its side, then close; True keeps the connection open for that.

        A client that is gone looks the same: a long poll or a stream would hold its place in vain. TLS
        has no connection that is open to one side.
        """
        if self._speaks_tls or self.is_idle or kind_of(self._serving.scope["path"]) != CALL:
            return False
        return self._close_behind_answers()

    @property
    def _speaks_tls(self) -> bool:
        return self.transport.get_extra_info("ssl_object") is not None

    @property
    def _progress(self) -> tuple[Any, int, int]:
        """The newest request, how many have come to their end, and the bytes of all bodies."""
        return self.cycle, self._ended, self._body_bytes

    def _count(self, data: bytes, before: tuple[Any, int, int]) -> None:
        """Bound what was read and is neither a whole head nor part of a body."""
        if self._progress == before:
            self._behind_body += len(data)
        else:
            self._behind_body = 0
        if self._heard_all or self.cycle is not before[0]:
            self._head_is_there()
        elif self._behind_body > self.limits.head_bytes_max and not self.is_idle:
            self.refuse(HEAD_TOO_LARGE)  # trailers, or the head of a next request
        elif self.is_idle:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.head_bytes_max:
                self.refuse(HEAD_TOO_LARGE)
            elif self._head_timer is None:
                self._expect_head()

    def _is_revoked(self, revoked: Revoked) -> bool:
        """Asked with all that comes, and now and then: a connection may be older than its revocation."""
        speaks_tls = self.transport.get_extra_info("ssl_object")
        shown = None if speaks_tls is None else speaks_tls.getpeercert(binary_form=True)
        return shown is not None and revoked.lists(shown)

    def _look_again(self, revoked: Revoked) -> None:
        """A stream of events says nothing to us while it reads: it is cut when its certificate is revoked."""
        if self._is_revoked(revoked):
            self.transport.abort()
        else:
            self._look_timer = self.loop.call_later(LOOK_EVERY_SECONDS, self._look_again, revoked)

    # What the parser says.

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._weight() > self.limits.head_bytes_max:
            self._stop_parser(HEAD_TOO_LARGE)
        if len(self.pipeline) >= self.limits.pipelined_max:
            # One read brings thousands of requests, and each takes a hundred times its length in memory.
            self._stop_parser(TOO_MANY)
        if not self.parser.should_upgrade():
            super().on_headers_complete()
            return
        if self._has_body():
            self._stop_parser(MALFORMED)
        super().on_headers_complete()
        self._heard_all = True
        self.cycle.keep_alive = False

    def _stop_parser(self, kind: Kind) -> NoReturn:
        """End the parser in the middle of a read: the requests behind this one are not read at all."""
        self._refused_for = kind
        raise HeadRefused

    def _has_body(self) -> bool:
        return any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
            for name, value in self.headers
        )

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else a trailer: it would become a header of the request that is being served
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._ended += 1
        super().on_message_complete()

    @property
    def is_admitted(self) -> bool:
        """Whether any request of this connection was let in."""
        return self._admitted or (bool(self.cycle) and ADMITTED in self.cycle.scope)

    def _look_who(self) -> None:
        """Close a connection that shows no key which opens anything."""
        if self.is_admitted:
            return
        if self.is_idle:
            self.transport.abort()
        else:
            self._admit_timer = self.loop.call_later(LOOK_EVERY_SECONDS, self._look_who)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being done for this connection."""
        return self.cycle is None or bool(self.cycle.response_complete)

    @property
    def may_leave(self) -> bool:
        """Whether it can make room: it is idle, or was refused and is only heard out."""
        return (self.is_idle and not self._no_room) or (bool(self.cycle) and HEARD_OUT in self.cycle.scope)

    def refuse(self, kind: Kind) -> None:
        """Say why, and close; behind answers that are owed the connection closes without a word."""
        if self.transport.is_closing() or self._heard_all:
            return
        if self.door is not None:
            self.door.refused(kind.code)
        if not self._close_behind_answers():
            if not self._answer_has_begun:
                self._say(kind)
            self.hang_up()
        elif _streams(self._serving):
            self.hang_up()  # it would not end by itself

    def _close_behind_answers(self) -> bool:
        """Take no more requests, and close once those that are whole are answered; False if there is none."""
        self._heard_all = True
        self.flow.resume_reading()  # what is left unread at the close would take the answers back
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
        if self._heard_all and _streams(cycle):
            self.hang_up()
        else:
            super()._start_asgi_task(cycle, app)

    def _drop_answers(self) -> None:
        """Tell every request that nothing can be written any more: uvicorn tells the newest alone."""
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()

    def _say(self, kind: Kind) -> None:
        body = Problem(kind, "").body("-")
        head = b"HTTP/1.1 %d Refused\r\ncontent-type: application/problem+json\r\n" % kind.status
        self.transport.write(head + b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body))

    def send_400_response(self, msg: str) -> None:
        self.refuse(self._refused_for)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read_timer = self.loop.call_later(self.limits.send_seconds_max, self.transport.abort)

    def resume_writing(self) -> None:
        self._is_read()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        self.transport.abort()  # idle, or it would have read its answer by now

    def make_way(self) -> None:
        """Leave to another; one that waits between requests is not told, it might take it for an answer."""
        if self.cycle is None:
            self.refuse(OVERLOADED)
        else:
            self.hang_up()

    def hang_up(self) -> None:
        """Close, and do not wait for ever until the other end has read what was said."""
        self._drop_answers()
        self.transport.close()
        self.loop.call_later(self.limits.linger_seconds_max, self.transport.abort)

    def _is_read(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(self.limits.head_seconds_max, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        self.refuse(TOO_SLOW)

    def _head_is_there(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _weight(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + BESIDE_HEADER for name, value in self.headers)

    def _make_room(self, most: int, among: list[Any]) -> None:
        leaving = [other for other in among if other.may_leave and other is not self]
        if leaving:
            oldest = min(leaving, key=lambda other: other._seen_at)
            self.connections.discard(oldest)  # now: its own goodbye comes only in the loop's next turn
            oldest.make_way()
        elif len(among) > 2 * most:
            self.transport.abort()
        else:
            # When it has asked, and not before: the system throws an answer away that overtakes its question.
            self._no_room = True
            self.loop.call_later(self.limits.linger_seconds_max, self.refuse, OVERLOADED)


def _streams(cycle: Any) -> bool:
    return kind_of(cycle.scope["path"]) == STREAM


def protocol_with(
    limits: Limits, revoked: Revoked | None = None, allowance: Allowance | None = None
) -> type[BoundedProtocol]:
    """The protocol of a server with these limits, and this list of revoked certificates."""
    bound = allowance or Allowance(limits.connections_per_address)
    own: dict[str, Any] = {"limits": limits, "revoked": revoked, "allowance": bound, "of_address": Counter()}
    return type("HttpProtocol", (BoundedProtocol,), own)


def uvicorn_config(
    app: Any,
    limits: Limits,
    grace_seconds: float,
    revoked: Revoked | None = None,
    allowance: Allowance | None = None,
) -> uvicorn.Config:
    """uvicorn as we use it: no words of its own, no headers it believes, nothing that is not HTTP."""
    return uvicorn.Config(
        app, http=protocol_with(limits, revoked, allowance), ws="none", lifespan="off", log_config=None,
        access_log=False, proxy_headers=False, server_header=False,
        timeout_keep_alive=int(limits.idle_seconds_max), timeout_graceful_shutdown=max(1, int(grace_seconds)),
    )  # fmt: skip
