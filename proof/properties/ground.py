"""A database to play in: a clock that stands still until it is moved, a table of effects, and the oracle."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import psycopg

from faultline.audit import Effects, examine
from faultline.store.call import Call
from faultline.store.pool import Store
from proof.model.ledger import histories
from proof.model.relation import check
from tests.promises.rewriting import shipped_source

T = TypeVar("T")

BEGINNING: Final = datetime(2030, 1, 1, tzinfo=UTC)
EVER: Final = timedelta(days=3650)
"""While the machine moves time itself, no job is late; at its end everything must have drained."""

STILL_CLOCK: Final = """
create schema still;
create table still.clock as select '2030-01-01 00:00+00'::timestamptz as moment;
create table still.effects (
  job_id bigint not null, token bigint not null, claim uuid not null, wrote text not null);
create table still.server as
  select 1 as timeline, control.system_identifier, '2030-01-01 00:00+00'::timestamptz as started
  from pg_control_system() as control;
create function still.control() returns still.server language sql volatile
  as $$ select server from still.server $$;
create function still.started() returns timestamptz language sql volatile
  as $$ select started from still.server $$;
create or replace function faultline.timeline() returns int language sql volatile
  as $$ select timeline from still.server $$;
create or replace function faultline.now() returns timestamptz language sql volatile
  as $$ select moment from still.clock $$;
"""

CLEARED: Final = """
truncate faultline.active, faultline.later, faultline.dead, faultline.ledger, faultline.refusals,
         faultline.keys, faultline.lanes, faultline.queues, faultline.limits, faultline.task_limits,
         faultline.limited_lanes, still.effects;
update still.clock set moment = '2030-01-01 00:00+00';
select setseed(0.5);  -- chance decides which lane a claim looks at first: the same chance each time
update faultline.rounds
set round_at = '-infinity', hold_until = '-infinity', walked_at = '-infinity', gap_at = '{}';
"""

SERVER: Final = {
    "epoch": {"pg_postmaster_start_time()": "still.started()"},
    "check_server": {"pg_postmaster_start_time()": "still.started()"},
    "server_mark": {"pg_postmaster_start_time()": "still.started()"},
    "record_server": {
        "pg_control_system()": "still.control()",
        "pg_postmaster_start_time()": "still.started()",
    },
}
"""What the functions that look at the server ask PostgreSQL, and what they ask here."""

SIGHTS: Final = "select id, state, token, attempt, crashes, key, lease_until from faultline.jobs"


class PropertyDatabase:
    """One database of our own, and how often each interesting thing happened in it."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.conn = psycopg.connect(dsn, autocommit=True)
        self.counts: Counter[str] = Counter()
        if self.conn.execute("select to_regnamespace('still')").fetchone() == (None,):
            self.conn.execute(STILL_CLOCK)
            self._be_any_server()

    def _be_any_server(self) -> None:
        """Have the epoch read timeline, identity and start from a table: then a promotion is an act."""
        for name, questions in SERVER.items():
            source = shipped_source(self.conn, name)
            for real, played in questions.items():
                if real not in source:
                    raise LookupError(f"faultline.{name} does not say {real!r}: mend the ground")
                source = source.replace(real, played)
            self.conn.execute(source.encode())

    def close(self) -> None:
        self.conn.close()

    def clear(self) -> None:
        """Empty, and at the beginning of time. Tokens go on: no number is issued twice, in any history."""
        self.conn.execute(CLEARED)

    def run(self, call: Call[T]) -> T:
        return Store.run_in(self.conn, call)

    def move(self, by: timedelta) -> None:
        self.conn.execute("update still.clock set moment = moment + %s", [by])

    def sights(self) -> dict[int, tuple[Any, ...]]:
        """What a reader sees of every job; a job that is seen twice stands for itself only once here."""
        rows = self.conn.execute(SIGHTS).fetchall()
        assert len({row[0] for row in rows}) == len(rows), f"OwnerIsOne: a job stands in two places: {rows}"
        return {row[0]: row[1:] for row in rows}

    def audit(self, acknowledged: set[int], bound: timedelta = EVER) -> None:
        """The oracle, on all there is."""
        effects = Effects("still.effects")
        report = examine(self.conn, effects=effects, acknowledged=acknowledged, bound=bound)
        assert report.holds, str(report)

    def walk(self) -> None:
        """The model's next-state relation, on every job's history."""
        for history in histories(self.conn):
            breaches = check(history)
            assert not breaches, f"{breaches[0].invariant}: {breaches[0].why} in {history}"


@contextmanager
def opened(dsn: str) -> Iterator[PropertyDatabase]:
    """A ground, closed when the block ends."""
    ground = PropertyDatabase(dsn)
    try:
        yield ground
    finally:
        ground.close()
