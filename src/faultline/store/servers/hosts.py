"""The server of a DSN with several hosts: all are asked at once, and the newest primary is used.

libpq tries one host after the other, and a frozen one costs it the whole connect_timeout: its kernel accepts
and acknowledges, and nothing answers. libpq also cannot tell an old primary that woke up from a new one.
"""

import asyncio
import contextlib
import math
import os
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from time import monotonic
from typing import Any, Final, NamedTuple, Self, TypeVar

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus

from faultline.store.driver.sqlstate import connect_reason
from faultline.store.servers.dsn_hosts import name_of, split

T = TypeVar("T")

LOOK_AFTER_SECONDS: Final = 5.0
"""A call without an answer for this long gets a second look: a third of the default lease."""

LOOK_AFTER_SECONDS_MIN: Final = 1.0

SILENT_SECONDS_MAX: Final = 8.0
"""A call is given up after this long where its server does not answer the second look either."""

LAST_LOOK_SECONDS: Final = 3.0
"""With one host, the second look happens this long before the call is given up."""

LOOK_SECONDS: Final = 2.0
"""How long a second look waits for hosts that do not answer."""

GRACE_SECONDS: Final = 0.3
"""How long the other hosts may still take after one that takes writes has answered."""

ASK_AGAIN_SECONDS: Final = 0.5
"""Pause before a host that takes no writes is asked again: it may be promoted meanwhile."""

JOIN_SECONDS_MIN: Final = 0.1

FRESH_SECONDS: Final = 1.0
"""For this long, the next connections use the same choice: a pool makes several at once."""

QUICK_SECONDS: Final = 2
"""How long a connection to the chosen host may take before all hosts are asked again."""

CONNECT_SECONDS_MAX: Final = 10

STATE_QUESTION: Final = "select read_only, cluster, epoch, token from faultline.server_state()"
PLAIN_QUESTION: Final = """
select pg_is_in_recovery() or current_setting('transaction_read_only') = 'on', 0::bigint, 0::bigint, 0::bigint
"""
"""For a database without our schema, or a role without rights: there is nothing to compare."""

NOT_THERE: Final = ("42883", "3F000", "42501")


def look_after(lease: float) -> float:
    """A third of a lease, with a limit: after a quick failover, jobs should not wait for many seconds.

    >>> look_after(15.0), look_after(0.6), look_after(3600.0)
    (5.0, 1.0, 5.0)
    """
    return min(max(lease / 3, LOOK_AFTER_SECONDS_MIN), LOOK_AFTER_SECONDS)


class ServerState(NamedTuple):
    """The state that a server reports."""

    read_only: bool
    cluster: int
    epoch: int
    token: int

    @property
    def rank(self) -> tuple[int, int]:
        """Its rank among servers of one cluster: by epoch, then, for the same epoch, by token."""
        return self.epoch, self.token


class ServerReply(NamedTuple):
    """The reply of one host; a host that did not answer has none."""

    state: ServerState | None
    said: str = ""

    @property
    def takes_writes(self) -> bool:
        return self.state is not None and not self.state.read_only


Place = tuple[frozenset[str], str]
"""The hosts of a DSN and its database: a cluster identifier is not enough, since clones share it."""


class Epochs:
    """The highest epoch that this process has seen, by place and cluster."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._highest: dict[tuple[Place, int], int] = {}

    def see(self, place: Place, state: ServerState) -> None:
        """Remember a server that takes writes."""
        key = place, state.cluster
        with self._lock:
            if state.epoch > self._highest.get(key, 0):
                self._highest[key] = state.epoch

    def is_past(self, place: Place, state: ServerState) -> bool:
        """Whether a later epoch was seen, so that this server is an old primary."""
        return state.epoch < self._highest.get((place, state.cluster), 0)

    def after_fork(self) -> None:
        self._lock = threading.Lock()


EPOCHS: Final = Epochs()


class Hosts:
    """The hosts of one DSN, and what this process knows about them."""

    def __init__(self, conninfo: str) -> None:
        told: dict[str, Any] = conninfo_to_dict(conninfo)
        self.conninfo = conninfo
        self.each = split(conninfo)
        self.place: Place = (frozenset(map(name_of, self.each)), str(told.get("dbname") or told.get("user")))
        self.connect_seconds = max(2, int(told.get("connect_timeout") or CONNECT_SECONDS_MAX))
        self._lock = threading.Lock()
        self._survey: Survey | None = None
        self._chosen: tuple[str, float] | None = None
        self._left_at: dict[str, float] = {}

    @property
    def are_many(self) -> bool:
        return len(self.each) > 1

    def survey(self, seconds: float) -> dict[str, ServerReply]:
        """Ask all hosts at once; calls at the same time share the answers."""
        with self._lock:
            if self._survey is None or not self._survey.can_be_joined:
                self._survey = Survey(self).start(seconds)
            survey = self._survey
        return survey.wait(seconds)

    def choose(self) -> str:
        """The newest host that takes writes; if there is none, NoPrimary with a reason for each host."""
        with self._lock:
            if self._chosen is not None and monotonic() - self._chosen[1] < FRESH_SECONDS:
                return self._chosen[0]
        answers = self.survey(self.connect_seconds)
        best = self.newest(answers)
        if best is None:
            said = "; ".join(f"{name_of(host)}: {self._why_not(answers.get(host))}" for host in self.each)
            raise NoPrimary(f"none of {len(self.each)} hosts takes writes: {said}")
        with self._lock:
            self._chosen = best, monotonic()
        return best

    def newest(self, answers: Mapping[str, ServerReply]) -> str | None:
        """The host of the highest epoch that takes writes; never one below an epoch that was seen before."""
        fit = {
            host: state.rank
            for host in self.each
            if (answer := answers.get(host)) and answer.takes_writes and (state := answer.state)
            if not EPOCHS.is_past(self.place, state)
        }
        return max(fit, key=fit.__getitem__, default=None)

    def admit(self, state: ServerState) -> None:
        """Refuse a connection to a server that takes no writes, or is an old primary."""
        if state.read_only:
            self.forget()
            raise psycopg.OperationalError("session is read-only")
        if EPOCHS.is_past(self.place, state):
            self.forget()
            raise StalePrimary(
                "the server is an old primary: another one was promoted since, and was seen here"
            )
        EPOCHS.see(self.place, state)

    def leave(self, host: str) -> None:
        """Mark a host that a call gave up: older connections to it are not used again."""
        with self._lock:
            self._chosen = None
            self._left_at[host] = monotonic()

    def was_left_since(self, host: str, moment: float) -> bool:
        return self._left_at.get(host, 0.0) > moment

    def forget(self) -> None:
        """Drop the last choice: that host is no longer right."""
        with self._lock:
            self._chosen = None

    def _why_not(self, answer: ServerReply | None) -> str:
        if answer is None:
            return "no answer"
        if answer.state is None:
            return answer.said
        return "takes no writes" if answer.state.read_only else "an old primary"


class NoPrimary(psycopg.OperationalError):
    """All hosts were asked, and none can be used."""


class StalePrimary(psycopg.OperationalError):
    """A server takes writes, but this process has seen a later epoch."""


@lru_cache(maxsize=64)
def hosts_of(conninfo: str) -> Hosts:
    """The hosts of a DSN, shared by the whole process."""
    return Hosts(conninfo)


def _forget_the_parent() -> None:
    hosts_of.cache_clear()  # a child has no survey threads, and the locks may be held
    EPOCHS.after_fork()


os.register_at_fork(after_in_child=_forget_the_parent)


class Survey:
    """One question to all hosts at once, each in its own thread: a name server may be slow too."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._until = 0.0
        self._changed = threading.Condition()
        self._answers: dict[str, ServerReply] = {}
        self._found_at: float | None = None

    def start(self, seconds: float) -> Self:
        self._until = monotonic() + seconds
        for host in self._hosts.each:
            threading.Thread(target=self._ask, args=(host,), daemon=True, name="faultline-hosts").start()
        return self

    @property
    def is_over(self) -> bool:
        return self._seconds_left() <= 0

    @property
    def can_be_joined(self) -> bool:
        """Whether a call may share it; not at its very end, when its threads may have stopped already."""
        return self._seconds_left() > JOIN_SECONDS_MIN

    def wait(self, seconds: float) -> dict[str, ServerReply]:
        """The answers at the moment when a host can be chosen, all have answered, or time is up."""
        until = monotonic() + seconds
        with self._changed:
            self._until = max(self._until, until)
            while (left := min(self._seconds_left(), until - monotonic())) > 0:
                self._changed.wait(left)
            self._changed.notify_all()
            return dict(self._answers)

    def _seconds_left(self) -> float:
        if len(self._answers) == len(self._hosts.each):
            return 0.0
        until = self._until if self._found_at is None else min(self._until, self._found_at + GRACE_SECONDS)
        return until - monotonic()

    def _ask(self, host: str) -> None:
        """Ask until it takes writes: a promotion during the survey is noticed half a second later."""
        conn: Connection[Any] | None = None
        try:
            while not self.is_over:
                conn = self._ask_once(host, conn)
                self._pause()
        finally:
            _close(conn)

    def _ask_once(self, host: str, conn: Connection[Any] | None) -> Connection[Any] | None:
        seconds = max(0.1, self._until - monotonic())
        until = monotonic() + seconds
        try:
            # The driver accepts no less than two seconds here.
            conn = conn or psycopg.connect(host, autocommit=True, connect_timeout=max(2, math.ceil(seconds)))
            state = _state_of(conn, seconds) if self._hosts.are_many else None
            self._tell(host, ServerReply(state, "answers"))
        except (psycopg.Error, OSError) as fault:
            # Silence is no answer. But a pooler that accepts the connection and has no server is an answer.
            if conn is not None or monotonic() < until:
                self._tell(host, ServerReply(None, connect_reason(fault)))
            _close(conn)
            return None
        return conn

    def _tell(self, host: str, answer: ServerReply) -> None:
        with self._changed:
            self._answers[host] = answer
            if answer.takes_writes and answer.state is not None:
                EPOCHS.see(self._hosts.place, answer.state)
                self._found_at = self._found_at or monotonic()
            self._changed.notify_all()

    def _pause(self) -> None:
        until = monotonic() + ASK_AGAIN_SECONDS
        with self._changed:
            while (left := min(self._seconds_left(), until - monotonic())) > 0:
                self._changed.wait(left)


def _state_of(conn: Connection[Any], seconds: float) -> ServerState:
    """Ask with a time limit, unlike an ordinary call: a frozen server would block the thread without end."""
    try:
        return _ask_for_state(conn, STATE_QUESTION, seconds)
    except psycopg.Error as fault:
        if fault.sqlstate not in NOT_THERE:
            raise
        return _ask_for_state(conn, PLAIN_QUESTION, seconds)


def _ask_for_state(conn: Connection[Any], question: str, seconds: float) -> ServerState:
    conn.pgconn.send_query(question.encode())
    reply = conn.wait(execute(conn.pgconn), timeout=seconds)[-1]
    if reply.status != ExecStatus.TUPLES_OK:
        raise error_from_result(reply)
    read_only, *numbers = (reply.get_value(0, column) or b"0" for column in range(4))
    return ServerState(read_only == b"t", *map(int, numbers))


def _close(conn: Connection[Any] | None) -> None:
    if conn is not None:
        conn.close()


class SecondLook(NamedTuple):
    """The second look of a connection at an unanswered call: it asks whether its server is still right."""

    hosts: Hosts
    host: str
    state: ServerState | None
    """None for a DSN with one host: there is nothing to compare."""
    after: float
    silent_max: float
    made_at: float

    @classmethod
    def of(cls, hosts: Hosts, look_after: float, silent_max: float) -> Self:
        """With one host there is no other choice, so the look comes shortly before the call is given up."""
        after = look_after if hosts.are_many else max(look_after, silent_max - LAST_LOOK_SECONDS)
        return cls(hosts, hosts.conninfo, None, after, silent_max, monotonic())

    @property
    def is_stale(self) -> bool:
        """Whether its server was given up, or a later epoch was seen, since this connection was made."""
        if self.hosts.was_left_since(self.host, self.made_at):
            return True
        return self.state is not None and EPOCHS.is_past(self.hosts.place, self.state)

    def judge(self, silent_for: float) -> tuple[str | None, float]:
        """The reason to leave the server, or None; and the seconds until the next look."""
        began = monotonic()
        answers = self.hosts.survey(LOOK_SECONDS)
        silent_for += monotonic() - began
        here, best = answers.get(self.host), self.hosts.newest(answers)
        if best is not None and best != self.host and _is_newer(answers[best], here):
            return f"no answer for {silent_for:.0f} s, and {name_of(best)} takes writes now", 0.0
        if here is not None:
            return None, self.after  # the server lives: the call waits for a lock, or is slow
        if silent_for >= self.silent_max:
            return f"no answer for {silent_for:.0f} s, nor to a new connection", 0.0
        return None, 0.0


def _is_newer(other: ServerReply, here: ServerReply | None) -> bool:
    if here is None or here.state is None or here.state.read_only or other.state is None:
        return True
    return other.state.rank > here.state.rank


async def in_thread(work: Callable[[], T]) -> T:
    """Await blocking work in its own thread: the loop's threads may all be busy with handlers."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, fault: BaseException | None) -> None:
        if ended.done():
            return
        if fault is not None:
            ended.set_exception(fault)
        else:
            ended.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, fault = None, None
        try:
            result = work()
        except BaseException as error:
            fault = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, result, fault)

    threading.Thread(target=run, daemon=True, name="faultline-look").start()
    return await ended
