"""Calls without the driver's cursor, on connections that only Faultline uses.

A cursor examines each statement again: its form, whether it is prepared, how to read each column. That is
half of a small call's cost on the client, and our connections repeat the same few statements.
"""

from collections.abc import Callable
from itertools import count
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection, Connection, Error, IsolationLevel
from psycopg.abc import Buffer, PQGen
from psycopg.abc import Transformer as Adapt
from psycopg.adapt import AdaptersMap, PyFormat, Transformer
from psycopg.errors import InternalError_, InvalidSqlStatementName, error_from_result
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from faultline.store.call import Call, Row
from faultline.store.driver.arrays import register_types
from faultline.store.driver.loaders import register_raw_types

STATEMENTS_MAX: Final = 100
"""Prepared statements of one connection; a further statement is sent unprepared."""

_FORMATS: Final = [PyFormat.AUTO] * 32

Take = Callable[[list[Row]], None]
"""Called with the rows of a reply as soon as it is there, before the awaiting coroutine runs."""

Form = tuple[str, tuple[int, ...]]
"""A statement and the types of its parameters."""


class RawReplies:
    """The adapters for replies in which some values stay in wire format."""

    def __init__(self, conn: Connection[Any] | AsyncConnection[Any], call: Call[Any]) -> None:
        self.connection = conn
        self.adapters = AdaptersMap(conn.adapters)
        register_raw_types(self.adapters, call)


class PreparedMessage(NamedTuple):
    """A call that is encoded, ready to be sent."""

    form: Form
    args: list[Buffer | None]
    formats: list[int]
    reader: Adapt


class PreparedCalls:
    """The prepared statements of one connection, in autocommit mode and for one caller at a time.

    The connection's `wait` runs its generators.
    """

    def __init__(self, conn: Connection[Any] | AsyncConnection[Any]) -> None:
        register_types(conn)
        self._pgconn = conn.pgconn
        self._conn = conn
        self._adapt = Transformer(conn)
        self._names: dict[Form, bytes | None] = {}
        self._numbers = count()  # never reused: the server may still know an old name
        self._in_line = 0
        self._raw: dict[tuple[bool, bool], Adapt] = {}

    @property
    def goes_in_line(self) -> bool:
        """Whether a pipelined call was sent whose reply is not read yet."""
        return self._in_line > 0

    def carry(self, call: Call[Any], hint: Call[Any] | None = None) -> PQGen[list[Row]]:
        """Run one call in its own transaction; returns the rows of its reply.

        A hint is a second call in the same message. It runs after the commit of the first, and its outcome
        is ignored.
        """
        message = self.prepare(call)
        try:
            replies = yield from self._speak(message, hint)
            return self._rows(message, replies)
        except InvalidSqlStatementName:  # the session forgot its statements: a handler's DISCARD ALL
            self._names.clear()
            replies = yield from self._speak(message, None)
            return self._rows(message, replies)

    def begin(self, isolation: IsolationLevel | None, reset: bytes | None = None) -> PQGen[None]:
        """Begin a transaction, without a block of the driver around it.

        A reset that is still due goes first, in the same message, and in a transaction of its own: else a
        rollback would undo it, too.
        """
        message = b"BEGIN" if isolation is None else _level(isolation)
        if reset is not None:
            message = b"BEGIN; " + reset + b"; COMMIT; " + message
        self._pgconn.send_query(message)
        self._check((yield from execute(self._pgconn)), ExecStatus.COMMAND_OK)

    def commit(self, call: Call[Any]) -> PQGen[list[Row]]:
        """Run one call as the last of the open transaction, and COMMIT, in one round trip.

        If the call fails the server skips the COMMIT: the transaction is open, and is to be rolled back. The
        call has no name: the user of the transaction may have had the session forget all names.
        """
        message, pgconn = self.prepare(call), self._pgconn
        pgconn.enter_pipeline_mode()
        form, args, formats, _ = message
        pgconn.send_query_params(call.scalar.encode(), args, form[1], formats, Format.BINARY)
        pgconn.send_query_params(b"COMMIT", None)
        pgconn.pipeline_sync()
        yield from send(pgconn)
        replies = yield from self._to_the_end()
        pgconn.exit_pipeline_mode()
        ended = self._check(replies, ExecStatus.COMMAND_OK)
        if ended.command_status != b"COMMIT":
            raise InternalError_("the server answered COMMIT with a rollback")
        return self._rows(message, replies[:1])

    def send_ahead(self, message: PreparedMessage, take: Take | None) -> PQGen[list[Row]]:
        """Send a call now, even before earlier ones are answered; returns the generator that reads the reply.

        The server has the next call before it has answered the last, so it does not wait for the client.
        Each call is its own transaction. Replies come in the order of the calls, and must be read so.
        """
        pgconn, form = self._pgconn, message.form
        if not self._in_line:
            pgconn.enter_pipeline_mode()
        self._in_line += 1
        is_new = self._names.get(form) is None and len(self._names) < STATEMENTS_MAX
        if is_new:
            self._names[form] = name = self._new_name()
            pgconn.send_prepare(name, form[0].encode(), form[1])
        self._send(message)
        pgconn.pipeline_sync()
        return self._receive(message, take, is_new)

    def _receive(self, message: PreparedMessage, take: Take | None, is_new: bool) -> PQGen[list[Row]]:
        yield from send(self._pgconn)  # the rest that the socket did not take at once
        replies = yield from self._to_the_end()
        try:
            rows = self._rows(message, replies)
            if take is not None:
                take(rows)
            return rows
        except Error as fault:
            if is_new:
                self._names.pop(message.form, None)
            if isinstance(fault, InvalidSqlStatementName):
                self._names.clear()
            raise
        finally:
            self._in_line -= 1
            if not self._in_line:
                self._pgconn.exit_pipeline_mode()

    def _rows(self, message: PreparedMessage, replies: list[PGresult]) -> list[Row]:
        reply = self._check(replies, ExecStatus.TUPLES_OK)
        message.reader.set_pgresult(reply)
        return message.reader.load_rows(0, reply.ntuples, tuple)

    def _speak(self, message: PreparedMessage, hint: Call[Any] | None) -> PQGen[list[PGresult]]:
        yield from self._prepare(message)
        if hint is not None:
            behind = self.prepare(hint)
            try:
                yield from self._prepare(behind)
            except Error:  # a failed hint does not fail the call
                hint = None
        if hint is not None:
            return (yield from self._send_both(message, behind))
        self._send(message)
        replies: list[PGresult] = yield from execute(self._pgconn)
        return replies

    def _send_both(self, message: PreparedMessage, hint: PreparedMessage) -> PQGen[list[PGresult]]:
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        for said in (message, hint):
            self._send(said)
            pgconn.pipeline_sync()  # each in its own transaction
        yield from send(pgconn)
        replies = yield from self._to_the_end()
        yield from self._to_the_end()  # the hint's replies
        pgconn.exit_pipeline_mode()
        return replies

    def _to_the_end(self) -> PQGen[list[PGresult]]:
        """The replies up to the end of a transaction; the last is an error if its commit failed."""
        replies: list[PGresult] = []
        while True:
            part: list[PGresult] = yield from fetch_many(self._pgconn)
            if part and part[-1].status == ExecStatus.PIPELINE_SYNC:
                return replies
            replies += part

    def prepare(self, call: Call[Any]) -> PreparedMessage:
        """Encode a call, ready to be sent."""
        args, adapt = call.args, self._adapt
        sent = adapt.dump_sequence(list(args.values()), _FORMATS[: len(args)])
        reader = self._reader(call) if call.raw_moments or call.raw_documents else adapt
        return PreparedMessage(
            (call.numbered, adapt.types or ()), list(sent), list(adapt.formats or ()), reader
        )

    def _reader(self, call: Call[Any]) -> Adapt:
        how = (call.raw_moments, call.raw_documents)
        if how not in self._raw:
            self._raw[how] = Transformer(RawReplies(self._conn, call))
        return self._raw[how]

    def _prepare(self, message: PreparedMessage) -> PQGen[None]:
        """Prepare a statement under a name when it is used a second time."""
        names, form = self._names, message.form
        if form in names:
            if names[form] is None:
                name = self._new_name()
                self._pgconn.send_prepare(name, form[0].encode(), form[1])
                self._check((yield from execute(self._pgconn)), ExecStatus.COMMAND_OK)
                names[form] = name
        elif len(names) < STATEMENTS_MAX:
            names[form] = None

    def _new_name(self) -> bytes:
        return b"faultline_%d" % next(self._numbers)

    def _send(self, message: PreparedMessage) -> None:
        form, args, formats, _ = message
        if name := self._names.get(form):
            self._pgconn.send_query_prepared(name, args, formats, Format.BINARY)
        else:
            self._pgconn.send_query_params(form[0].encode(), args, form[1], formats, Format.BINARY)

    def _check(self, replies: list[PGresult], wanted: ExecStatus) -> PGresult:
        # In a pipeline, an error is followed by a result for each command that was skipped because of it.
        reply = next((reply for reply in replies if reply.status == ExecStatus.FATAL_ERROR), replies[-1])
        if reply.status != wanted:
            raise error_from_result(reply, encoding=self._conn.info.encoding)
        return reply


def _level(isolation: IsolationLevel) -> bytes:
    return b"BEGIN ISOLATION LEVEL " + isolation.name.replace("_", " ").encode()
