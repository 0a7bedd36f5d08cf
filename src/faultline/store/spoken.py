"""Calls spoken to the server without the driver's cursor, on connections that are ours alone.

A cursor looks anew at each statement: in which form, prepared or not, how to read each column. That is half
of what a small call costs on our side, and our connections say the same few sentences all day.
"""

from collections.abc import Callable
from functools import cached_property
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
from psycopg.types.numeric import Int8BinaryLoader

from faultline.store.arrays import teach
from faultline.store.call import Call, Row

STATEMENTS_MAX: Final = 100
"""Prepared on one connection; whatever is said in yet another form is sent whole."""

_FORMATS: Final = [PyFormat.AUTO] * 32

Answered = Callable[[int], None]
"""Told how many rows came, before they are read: the connection is free for the next call already."""

Form = tuple[str, tuple[int, ...]]
"""A statement, and the types of what stands in it."""


class RawMoments:
    """How to read replies with a timestamp as the eight byte integer that it is on the wire."""

    def __init__(self, conn: Connection[Any] | AsyncConnection[Any]) -> None:
        self.connection = conn
        self.adapters = AdaptersMap(conn.adapters)
        self.adapters.register_loader("timestamptz", Int8BinaryLoader)


class _Message(NamedTuple):
    form: Form
    args: list[Buffer | None]
    formats: list[int]


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

    @cached_property
    def _raw(self) -> Adapt:
        return Transformer(RawMoments(self._conn))

    def carry(
        self, call: Call[Any], hint: Call[Any] | None = None, answered: Answered | None = None
    ) -> PQGen[list[Row]]:
        """Carry one call, in a transaction of its own; gives the rows of its reply.

        With a hint, a second call goes out in the same message, to be carried out behind the commit of the
        first; nobody learns what became of it. It is put down now, and sent with the generator's first step.
        """
        adapt = self._raw if call.raw_moments else self._adapt
        return self._carry(self._put_down(call), hint, adapt, answered)

    def _carry(
        self, message: _Message, hint: Call[Any] | None, adapt: Adapt, answered: Answered | None
    ) -> PQGen[list[Row]]:
        try:
            reply = self._check((yield from self._speak(message, hint)), ExecStatus.TUPLES_OK)
        except InvalidSqlStatementName:  # somebody told the session to forget: a handler's DISCARD ALL
            self._names.clear()
            reply = self._check((yield from self._speak(message, None)), ExecStatus.TUPLES_OK)
        if answered is not None:
            answered(reply.ntuples)
        adapt.set_pgresult(reply)
        return adapt.load_rows(0, reply.ntuples, tuple)

    def _speak(self, message: _Message, hint: Call[Any] | None) -> PQGen[list[PGresult]]:
        yield from self._prepare(message)
        if hint is not None:
            behind = self._put_down(hint)
            try:
                yield from self._prepare(behind)
            except Error:  # no reason to refuse the call
                hint = None
        if hint is not None:
            return (yield from self._say_both(message, behind))
        self._say(message)
        replies: list[PGresult] = yield from execute(self._pgconn)
        return replies

    def _say_both(self, message: _Message, hint: _Message) -> PQGen[list[PGresult]]:
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

    def _put_down(self, call: Call[Any]) -> _Message:
        args, adapt = call.args, self._adapt
        sent = adapt.dump_sequence(list(args.values()), _FORMATS[: len(args)])
        return _Message((call.numbered, adapt.types or ()), list(sent), list(adapt.formats or ()))

    def _prepare(self, message: _Message) -> PQGen[None]:
        """From the second time on a statement has a name."""
        names, form = self._names, message.form
        if form in names:
            if names[form] is None:
                name = b"faultline_%d" % next(self._numbers)
                self._pgconn.send_prepare(name, form[0].encode(), form[1])
                self._check((yield from execute(self._pgconn)), ExecStatus.COMMAND_OK)
                names[form] = name
        elif len(names) < STATEMENTS_MAX:
            names[form] = None

    def _say(self, message: _Message) -> None:
        form, args, formats = message
        if name := self._names.get(form):
            self._pgconn.send_query_prepared(name, args, formats, Format.BINARY)
        else:
            self._pgconn.send_query_params(form[0].encode(), args, form[1], formats, Format.BINARY)

    def _check(self, replies: list[PGresult], wanted: ExecStatus) -> PGresult:
        reply = replies[-1]
        if reply.status != wanted:
            raise error_from_result(reply, encoding=self._conn.info.encoding)
        return reply
