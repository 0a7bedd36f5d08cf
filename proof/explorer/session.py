"""One database session that the explorer steps: raw libpq, because a step may have to be left waiting."""

import select
from collections.abc import Callable, Sequence
from enum import Enum

from psycopg import pq
from psycopg.conninfo import make_conninfo

from proof.explorer.step import StepReply

# Most steps are answered sooner. After this time, look whether the session waits for another.
SOON_MS = 2
STUCK_AFTER_LOOKS = 10_000
PREPARED = ("select", "insert", "with", "update")

_FINE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY)


class SessionState(Enum):
    """Where a session stands after it was given its turn."""

    READY = "done"
    BLOCKED = "waits"
    STOPPED = "stops"
    OVER = "over"


class SessionStuck(RuntimeError):
    """A session neither answered nor waited for another: the explorer cannot go on."""


class ExplorerSession:
    """A connection whose statements are sent and then watched, without a blocking wait."""

    def __init__(self, dsn: str, who: str = "") -> None:
        self.who = who
        self._conn = pq.PGconn.connect(make_conninfo(dsn, options=f"-c explorer.who={who}").encode())
        if self._conn.status != pq.ConnStatus.OK:
            raise SessionStuck(f"session {who} could not connect: {self._conn.get_error_message()}")
        self._conn.notice_handler = self._note
        self._poll = select.poll()
        self._poll.register(self._conn.socket, select.POLLIN)
        self._results: list[StepReply] = []
        self._prepared: dict[str, str] = {}
        self.stop = 0
        """The number of the stop it has reached, or 0."""

    @property
    def pid(self) -> int:
        return self._conn.backend_pid

    @property
    def is_idle(self) -> bool:
        """Whether it is between transactions, and so holds no lock."""
        return self._conn.transaction_status == pq.TransactionStatus.IDLE

    @property
    def has_failed(self) -> bool:
        return self._conn.transaction_status == pq.TransactionStatus.INERROR

    def send(self, statements: Sequence[str]) -> None:
        """Send statements together, in one message."""
        self._send("; ".join(self._short(statement) for statement in statements))

    def _short(self, statement: str) -> str:
        """The statement, prepared when it is met for the first time: it will be sent thousands of times."""
        if not statement.startswith(PREPARED) or (self.has_failed and statement not in self._prepared):
            return statement
        if statement not in self._prepared:
            name = f"s{len(self._prepared)}"
            made = self.run(f"prepare {name} as {statement}")
            if made.error:
                raise SessionStuck(f"{made.error} {made.message}: {statement}")
            self._prepared[statement] = f"execute {name}"
        return self._prepared[statement]

    def _send(self, sql: str) -> None:
        self._results.clear()
        self.stop = 0
        self._conn.send_query(sql.encode())

    def settle(self, is_blocked: Callable[[], bool], *, ask_first: bool = False) -> StepReply | SessionState:
        """The answer, or how the session stands without one: stopped, or blocked by another."""
        if ask_first and is_blocked():
            return SessionState.BLOCKED
        for _ in range(STUCK_AFTER_LOOKS):
            if self._poll.poll(SOON_MS):
                self._conn.consume_input()
                if self._has_answered():
                    return self._results[-1]
                if self.stop:
                    return SessionState.STOPPED
            elif is_blocked():
                return SessionState.BLOCKED
        raise SessionStuck(f"session {self.who} neither answered nor waited")

    def run(self, sql: str) -> StepReply:
        """A message that waits for no other session."""
        self._send(sql)
        return self._wait()

    def run_all(self, statements: Sequence[str]) -> StepReply:
        """The same, of statements that are sent again and again."""
        self.send(statements)
        return self._wait()

    def _wait(self) -> StepReply:
        while not self._has_answered():
            self._poll.poll()
            self._conn.consume_input()
        return self._results[-1]

    def cancel(self) -> None:
        """End whatever it waits for."""
        self._conn.get_cancel().cancel()

    def close(self) -> None:
        self._conn.finish()

    def _has_answered(self) -> bool:
        while not self._conn.is_busy():
            result = self._conn.get_result()
            if result is None:
                return True
            self._results.append(_read(result))
            if self._results[-1].error:
                # The first error is the answer; the statements behind it were not run.
                self._results[:] = [self._results[-1]]
        return False

    def _note(self, notice: pq.abc.PGresult) -> None:
        words = (notice.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").split()
        if words[:1] == [b"stop"]:
            self.stop = int(words[1])


def _read(result: pq.abc.PGresult) -> StepReply:
    if result.status not in _FINE:
        state = result.error_field(pq.DiagnosticField.SQLSTATE) or b"?"
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
        return StepReply(error=state.decode(), message=message.decode())
    return StepReply(tuple(_row(result, number) for number in range(result.ntuples)))


def _row(result: pq.abc.PGresult, number: int) -> tuple[str | None, ...]:
    cells = (result.get_value(number, column) for column in range(result.nfields))
    return tuple(None if cell is None else cell.decode() for cell in cells)
