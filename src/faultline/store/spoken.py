"""Calls spoken to the server without the driver's cursor, on connections that are ours alone.

A cursor looks anew at each statement: in which form, prepared or not, how to read each column. That is half
of what a small call costs on our side, and our connections say the same few sentences all day.
"""

from collections.abc import Callable
from itertools import count
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection, Connection, Error
from psycopg.abc import Buffer, PQGen
from psycopg.abc import Transformer as Adapt
from psycopg.adapt import AdaptersMap, PyFormat, Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from faultline.store.arrays import teach
from faultline.store.call import Call, Row
from faultline.store.loaders import teach_raw

STATEMENTS_MAX: Final = 100
"""Prepared on one connection; whatever is said in yet another form is sent whole."""

_FORMATS: Final = [PyFormat.AUTO] * 32

Take = Callable[[list[Row]], None]
"""Given the rows of a reply in the moment it is there, before whoever awaits it has its turn."""

Form = tuple[str, tuple[int, ...]]
"""A statement, and the types of what stands in it."""


class Raw:
    """How to read replies some of whose parts stay as they are on the wire."""

    def __init__(self, conn: Connection[Any] | AsyncConnection[Any], call: Call[Any]) -> None:
        self.connection = conn
        self.adapters = AdaptersMap(conn.adapters)
        teach_raw(self.adapters, call)


class Message(NamedTuple):
    """A call as it is sent, put down before its time."""

    form: Form
    args: list[Buffer | None]
    formats: list[int]
    reader: Adapt


class Spoken:
    """What one connection has said already. For autocommit, and for one speaker at a time.

    Its generators are carried by the connection's own `wait`.
    """

    def __init__(self, conn: Connection[Any] | AsyncConnection[Any]) -> None:
        teach(conn)
        self._pgconn = conn.pgconn
        self._conn = conn
        self._adapt = Transformer(conn)
        self._names: dict[Form, bytes | None] = {}
        self._numbers = count()  # never used again: of some the server may still know
        self._in_line = 0
        self._raw: dict[tuple[bool, bool], Adapt] = {}

    @property
    def goes_in_line(self) -> bool:
        """Whether something was said in line whose reply is not read yet."""
        return self._in_line > 0

    def carry(self, call: Call[Any], hint: Call[Any] | None = None) -> PQGen[list[Row]]:
        """Carry one call, in a transaction of its own; gives the rows of its reply.

        With a hint, a second call goes out in the same message, to be carried out behind the commit of the
        first; nobody learns what became of it.
        """
        message = self.put_down(call)
        try:
            replies = yield from self._speak(message, hint)
            return self._rows(message, replies)
        except InvalidSqlStatementName:  # somebody told the session to forget: a handler's DISCARD ALL
            self._names.clear()
            replies = yield from self._speak(message, None)
            return self._rows(message, replies)

    def say(self, message: Message, take: Take | None) -> PQGen[list[Row]]:
        """Say it here and now, also while what was said so before is not answered; gives what hears it out.

        The server has the next call before it has answered the last, so it need not wait for us. They are
        answered in their order, each a transaction of its own; so one is heard out before the next is.
        """
        pgconn, form = self._pgconn, message.form
        if not self._in_line:
            pgconn.enter_pipeline_mode()
        self._in_line += 1
        is_new = self._names.get(form) is None and len(self._names) < STATEMENTS_MAX
        if is_new:
            self._names[form] = name = self._new_name()
            pgconn.send_prepare(name, form[0].encode(), form[1])
        self._say(message)
        pgconn.pipeline_sync()
        return self._hear(message, take, is_new)

    def _hear(self, message: Message, take: Take | None, is_new: bool) -> PQGen[list[Row]]:
        yield from send(self._pgconn)  # what the socket would not take at once
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

    def _rows(self, message: Message, replies: list[PGresult]) -> list[Row]:
        reply = self._check(replies, ExecStatus.TUPLES_OK)
        message.reader.set_pgresult(reply)
        return message.reader.load_rows(0, reply.ntuples, tuple)

    def _speak(self, message: Message, hint: Call[Any] | None) -> PQGen[list[PGresult]]:
        yield from self._prepare(message)
        if hint is not None:
            behind = self.put_down(hint)
            try:
                yield from self._prepare(behind)
            except Error:  # no reason to refuse the call
                hint = None
        if hint is not None:
            return (yield from self._say_both(message, behind))
        self._say(message)
        replies: list[PGresult] = yield from execute(self._pgconn)
        return replies

    def _say_both(self, message: Message, hint: Message) -> PQGen[list[PGresult]]:
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        for said in (message, hint):
            self._say(said)
            pgconn.pipeline_sync()  # each a transaction of its own
        yield from send(pgconn)
        replies = yield from self._to_the_end()
        yield from self._to_the_end()  # of the hint
        pgconn.exit_pipeline_mode()
        return replies

    def _to_the_end(self) -> PQGen[list[PGresult]]:
        """What is answered up to the end of a transaction; the last is an error if its commit failed."""
        replies: list[PGresult] = []
        while True:
            part: list[PGresult] = yield from fetch_many(self._pgconn)
            if part and part[-1].status == ExecStatus.PIPELINE_SYNC:
                return replies
            replies += part

    def put_down(self, call: Call[Any]) -> Message:
        """Have it ready to be sent."""
        args, adapt = call.args, self._adapt
        sent = adapt.dump_sequence(list(args.values()), _FORMATS[: len(args)])
        reader = self._reader(call) if call.raw_moments or call.raw_documents else adapt
        return Message((call.numbered, adapt.types or ()), list(sent), list(adapt.formats or ()), reader)

    def _reader(self, call: Call[Any]) -> Adapt:
        how = (call.raw_moments, call.raw_documents)
        if how not in self._raw:
            self._raw[how] = Transformer(Raw(self._conn, call))
        return self._raw[how]

    def _prepare(self, message: Message) -> PQGen[None]:
        """From the second time on a statement has a name."""
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

    def _say(self, message: Message) -> None:
        form, args, formats, _ = message
        if name := self._names.get(form):
            self._pgconn.send_query_prepared(name, args, formats, Format.BINARY)
        else:
            self._pgconn.send_query_params(form[0].encode(), args, form[1], formats, Format.BINARY)

    def _check(self, replies: list[PGresult], wanted: ExecStatus) -> PGresult:
        # In line an error is followed by a word for each that was not tried because of it.
        reply = next((reply for reply in replies if reply.status == ExecStatus.FATAL_ERROR), replies[-1])
        if reply.status != wanted:
            raise error_from_result(reply, encoding=self._conn.info.encoding)
        return reply
