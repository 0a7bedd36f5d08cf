"""The explorer's own database: Faultline as shipped, virtual time, a way back, and a judge."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from types import TracebackType
from typing import Self

import psycopg

from faultline.audit import Effects, examine
from faultline.store.migrate import migrate
from proof.explorer.rewriting import Edit, rewrite, rewritten, shipped_source
from proof.explorer.scenario import VerbStop
from proof.explorer.session import ExplorerSession, SessionStuck
from proof.explorer.step import StepReply

STOPS_MAX = 64
VACUUM_EVERY = 250
_CHURNED = (
    "faultline.active, faultline.later, faultline.dead, faultline.ledger, faultline.refusals, faultline.keys,"
    " faultline.lanes, faultline.rounds, explorer.hands, explorer.told, explorer.effects"
)

# Real time has no place here: a session may stand for as long as the others take.
_PATIENT = (("reap", "'200ms'", "'0'"), ("end_when_idle", "'5s'", "'0'"))


def prepare(dsn: str) -> None:
    """Make a database ready to be explored: the shipped SQL, and the explorer's own schema beside it."""
    migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        for name in ("stage.sql", "check.sql"):
            conn.execute((files("proof.explorer") / "sql" / name).read_bytes())
        conn.execute("select faultline.lane_of('default', 0)")
    for function, old, new in _PATIENT:
        rewrite(dsn, function, old, new)


@contextmanager
def altered(dsn: str, edits: Iterable[Edit], stops: Iterable[VerbStop]) -> Iterator[tuple[str, ...]]:
    """The shipped functions with these edits, and with stops in them, while the block runs; their sources."""
    changes = [*edits, *(_pause(stop) for stop in stops)]
    names = sorted({name for name, _, _ in changes})
    with psycopg.connect(dsn, autocommit=True) as conn:
        shipped = {name: shipped_source(conn, name) for name in names}
        new = tuple(
            rewritten(shipped[name], *(change for change in changes if change[0] == name)) for name in names
        )
        try:
            for source in new:
                conn.execute(source.encode())
            yield new
        finally:
            for source in shipped.values():
                conn.execute(source.encode())


def _pause(stop: VerbStop) -> Edit:
    # An IF, because it leaves FOUND alone.
    pause = f"if explorer.stop('{stop.function}') then null; end if;\n  {stop.before}"
    return stop.function, stop.before, pause


class ExplorerDatabase:
    """A prepared database, the sessions that act in it, and one that watches."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._watcher = ExplorerSession(dsn)
        self._auditor = psycopg.connect(dsn, autocommit=True)
        self._sessions: dict[str, ExplorerSession] = {}
        self._kept: tuple[str, ...] | None = None
        self._asked: dict[str, str] = {}
        self._orders = 0
        self._let_go: set[int] = set()
        self._told(f"select pg_advisory_lock(number) from generate_series(1, {STOPS_MAX}) as number")

    def session(self, who: str) -> ExplorerSession:
        """The session of this name; it is kept from order to order."""
        if who not in self._sessions:
            self._sessions[who] = ExplorerSession(self._dsn, who)
            pids = {name: session.pid for name, session in self._sessions.items()}
            all_pids = ",".join(str(pid) for pid in pids.values())
            self._asked = {
                name: f"select pg_isolation_test_session_is_blocked({pid}, array[{all_pids}])"
                for name, pid in pids.items()
            }
        return self._sessions[who]

    def begin(self, setup: tuple[str, ...]) -> None:
        """Back to the beginning, and the scenario's own beginning after it."""
        self._orders += 1
        if self._orders % VACUUM_EVERY == 0:
            self._told(f"vacuum {_CHURNED}")
        if self._let_go:
            numbers = ",".join(str(number) for number in self._let_go)
            self._told(f"select pg_advisory_lock(number) from unnest(array[{numbers}]) as number")
            self._let_go.clear()
        if self._kept == setup:
            self._checked(self._watcher.run_all(("select explorer.restore()",)))
            return
        self._checked(self._watcher.run_all(("select explorer.reset()", *setup, "select explorer.keep()")))
        self._kept = setup

    def is_blocked(self, who: str) -> bool:
        """Whether a session waits for a lock that another of ours has."""
        answer = self._checked(self._watcher.run_all((self._asked[who],)))
        return answer.rows[0][0] == "t"

    def let_go(self, session: ExplorerSession) -> None:
        """Let a session that stands at a stop walk on."""
        self._let_go.add(session.stop)
        self._told(f"select pg_advisory_unlock({session.stop})")
        session.stop = 0

    def drain(self) -> StepReply:
        """Let a fresh worker and watchdog finish; the answer is the ending's number, or an error."""
        return self._watcher.run_all(("select explorer.drain()", "select explorer.ending()"))

    def broken(self) -> list[tuple[str, str]]:
        """Each invariant that does not hold, and what is wrong."""
        own = [(str(name), str(wrong)) for name, wrong in self._told("select * from explorer.check()").rows]
        report = examine(self._auditor, effects=Effects("explorer.work", ["task"]))
        audited = [
            (verdict.name, f"audit: {example}") for verdict in report.violated for example in verdict.examples
        ]
        return own + audited

    def break_off(self) -> None:
        """End every session: one that waits for a lock would not notice that its client has gone."""
        for session in self._sessions.values():
            self._watcher.run(f"select pg_terminate_backend({session.pid}, 5000)")
            session.close()
        self._sessions.clear()

    def close(self) -> None:
        with suppress(Exception):
            self.break_off()
        self._watcher.close()
        self._auditor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _told(self, sql: str) -> StepReply:
        return self._checked(self._watcher.run(sql))

    def _checked(self, answer: StepReply) -> StepReply:
        if answer.error:
            raise SessionStuck(f"the stage is broken: {answer.error} {answer.message}")
        return answer
