"""BoundedProtocol: uvicorn's HTTP protocol with further bounds on heads, trailers and connections.

A head that is too slow or too large is refused; past the bound on connections, the one that was idle for
longest makes room for the newest. A refused connection that is only read to its end counts as idle:
otherwise clients without a key could hold every place with bodies that never end.

Trailers, the headers behind a chunked body, are of no use here: they are dropped, and their bytes counted.

Other protocols are refused. The bytes behind a head that asks for one are not read as its body, so a body
there would be the next request, unknown to a proxy before us. Such a head is a connection's last.
"""

import asyncio
import re
import time
from typing import Any, Final, NoReturn

from faultline.server.http.connection.answering_protocol import AnsweringProtocol
from faultline.server.http.connection.connection_places import ConnectionPlaces
from faultline.server.http.connection.head_bounds import HeadBounds
from faultline.server.http.connection.revocation_check import RevocationCheck
from faultline.server.http.guard.request_guard import ADMITTED, HEARD_OUT
from faultline.server.http.guard.request_rates import CALL, budget_of
from faultline.server.limits import Limits
from faultline.server.listener.address_limits import AddressAllowance, plain
from faultline.server.listener.revoked_certificates import RevokedCertificates
from faultline.server.problems import (
    HEAD_TOO_LARGE,
    MALFORMED,
    OVERLOADED,
    REVOKED,
    TOO_MANY,
    TOO_SLOW,
    WRONG_HOST,
    ProblemKind,
)

ADMITTED_EVERY_SECONDS: Final = 5.0
"""The interval between checks of a connection whose first request goes on past its time."""


class HeadRefused(Exception):
    """A request is refused for its head; the exception stops the parser."""


class BoundedProtocol(AnsweringProtocol):
    """The receiving side of a connection: its place, its certificate, its heads and its bodies."""

    revoked: RevokedCertificates | None = None
    places = ConnectionPlaces(Limits(), AddressAllowance(Limits().connections_per_address))

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.address = plain(self.client[0]) if self.client else ""
        self.seen_at = time.monotonic()
        self._admitted = False
        self._admit_timer = self.loop.call_later(self.limits.unadmitted_seconds_max, self._look_who)
        self._in_head = True
        self._refused_for = MALFORMED
        """The reason why the parser was stopped."""
        self._ended = self._body_bytes = 0
        self._revocation = (
            None if self.revoked is None else RevocationCheck(self.revoked, transport, transport.abort)
        )
        self._no_room = False
        self._head = HeadBounds(self.limits, self.loop, self._head_is_late)
        self._head.expect()
        self.places.enter(self, self.connections)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head.arrived()
        if self._revocation is not None:
            self._revocation.end()
        self._admit_timer.cancel()
        self.places.leave(self.address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._revocation is not None and self._revocation.is_revoked():
            # In the middle of an answer a second one would be taken for its end.
            self.refuse(REVOKED) if self.is_idle else self.cut()
            return
        if self._no_room:
            self.refuse(OVERLOADED)
            return
        if self._heard_all:
            return
        before = self._progress
        self._admitted = self.is_admitted
        self.seen_at = time.monotonic()
        super().data_received(data)
        self._count(data, before)

    def eof_received(self) -> bool:
        """Answer a client that has closed its side, then close; True keeps the connection open for that.

        A client that is gone looks the same: a long poll or a stream would hold its place in vain. With TLS
        no connection is open to one side.
        """
        if self._speaks_tls or self.is_idle or budget_of(self._serving.scope["path"]) != CALL:
            return False
        return self._close_behind_answers()

    @property
    def _speaks_tls(self) -> bool:
        return self.transport.get_extra_info("ssl_object") is not None

    @property
    def _progress(self) -> tuple[Any, int, int]:
        """The newest request, the number of ended ones, and the bytes of all bodies."""
        return self.cycle, self._ended, self._body_bytes

    def _count(self, data: bytes, before: tuple[Any, int, int]) -> None:
        """Bound the bytes that are neither a whole head nor part of a body."""
        self._head.count_behind_body(len(data), progress=self._progress != before)
        if self._heard_all or self.cycle is not before[0]:
            self._head.arrived()
        elif self.is_idle:
            if self._head.grows_too_large(len(data)):
                self.refuse(HEAD_TOO_LARGE)
        elif self._head.too_much_behind_body:
            self.refuse(HEAD_TOO_LARGE)

    def _head_is_late(self) -> None:
        self.refuse(TOO_SLOW)

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._head.is_too_heavy(self.url, self.headers):
            self._stop_parser(HEAD_TOO_LARGE)
        if len(self.pipeline) >= self.limits.pipelined_max:
            # One read brings thousands of requests, and each takes a hundred times its length in memory.
            self._stop_parser(TOO_MANY)
        if self.url[:1] != b"/" and self._authority_differs():
            self._stop_parser(WRONG_HOST)
        if not self.parser.should_upgrade():
            super().on_headers_complete()
            return
        if self._has_body():
            self._stop_parser(MALFORMED)
        super().on_headers_complete()
        self._heard_all = True
        self.cycle.keep_alive = False

    def _stop_parser(self, kind: ProblemKind) -> NoReturn:
        """Stop the parser in the middle of a read: the requests behind this one are not read at all."""
        self._refused_for = kind
        raise HeadRefused

    def send_400_response(self, msg: str) -> None:
        """uvicorn's answer to a parser that was stopped."""
        self.refuse(self._refused_for)

    def _authority_differs(self) -> bool:
        """Whether an absolute target (`GET http://...`) names another server than the Host header."""
        _, is_absolute, rest = self.url.partition(b"://")
        authority = re.split(rb"[/?#]", rest, maxsplit=1)[0]
        hosts = [value.strip().lower() for name, value in self.headers if name == b"host"]
        return bool(is_absolute) and hosts != [authority.lower()]

    def _has_body(self) -> bool:
        return any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
            for name, value in self.headers
        )

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a trailer would become a header of the request under way
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._ended += 1
        super().on_message_complete()

    # Its place among the connections.

    @property
    def is_admitted(self) -> bool:
        """Whether any request of this connection was admitted."""
        return self._admitted or (bool(self.cycle) and ADMITTED in self.cycle.scope)

    def _look_who(self) -> None:
        """Close a connection without a valid key."""
        if self.is_admitted:
            return
        if self.is_idle:
            self.cut()
        else:
            self._admit_timer = self.loop.call_later(ADMITTED_EVERY_SECONDS, self._look_who)

    @property
    def may_leave(self) -> bool:
        """Whether it can make room: it is idle, or was refused and is only read to its end."""
        return (self.is_idle and not self._no_room) or (bool(self.cycle) and HEARD_OUT in self.cycle.scope)

    def make_way(self) -> None:
        """Make room for another; a connection between requests gets no message: it might seem an answer."""
        if self.cycle is None:
            self.refuse(OVERLOADED)
        else:
            self.hang_up()

    def refuse_for_room(self) -> None:
        """Refuse after its request, and not before: the system drops an answer that precedes its question."""
        self._no_room = True
        self.loop.call_later(self.limits.linger_seconds_max, self.refuse, OVERLOADED)
