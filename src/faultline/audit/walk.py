"""The walk: every question of the audit, asked in one snapshot, range after range of job ids."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row, tuple_row
from psycopg.sql import SQL, Composed, Identifier

from faultline.audit.findings import AuditFindings
from faultline.audit.invariants import BY_RANGE, OF_ACKNOWLEDGED, OF_EFFECTS, OF_KEYS, AuditCheck, source
from faultline.errors import InputError

RANGE_IDS: Final = 20_000
"""The job ids in one question: some tens of milliseconds of the server's time."""

ANSWERS_MAX: Final = 1_000
"""The bound on the counterexamples in one answer."""

Tell = Callable[[int, int], None]
"""Called with the progress of the walk: ids done, ids in all."""


@dataclass(frozen=True, slots=True)
class Effects:
    """A table of yours whose rows were written under leases: columns job_id and token, and where there are
    such, claim, attempt, and effect (a name, where one job leaves several).

    `tasks` are those whose every success leaves a row; of these none may be missing.
    """

    table: str
    tasks: Sequence[str] = ()


class TimeIsUp(Exception):
    """The limit passed between two questions."""


class Walk:
    """One audit under way: a snapshot, the time that is left, and the notes."""

    def __init__(self, conn: psycopg.Connection[Any], bound: timedelta, limit: timedelta | None) -> None:
        self._conn = conn
        self._bound = bound
        self._ends = None if limit is None else time.monotonic() + limit.total_seconds()
        self._prepare: bool | None = False
        self.notes = AuditFindings()
        self.moment = datetime.now(UTC)
        self.standby = False

    def all_of_it(self, effects: Effects | None, acknowledged: Collection[int], tell: Tell) -> None:
        self._conn.execute(source("snapshot").encode())
        facts = self._facts("facts")
        self.moment, self.standby = facts["moment"], facts["standby"]
        total = int(facts["highest"])
        # Planning is most of the cost on a small database, which suites ask again and again; on a big one
        # each range needs a plan for its own data.
        self._prepare = None if total <= RANGE_IDS else False
        for low in self._ranges(tell, total):
            between = {"low": low, "high": low + RANGE_IDS, "bound": self._bound}
            self.notes.looked.update(self._facts("looked_at", between))
            for check in BY_RANGE:
                self._check(check, between)
        self.notes.looked.update(self._facts("keys"))
        for check in OF_KEYS:
            self._check(check, {})
        self._acknowledged(acknowledged)
        if effects is not None:
            self._effects(effects)
        tell(total, total)

    def _ranges(self, tell: Tell, total: int) -> Iterator[int]:
        """The begin of each range; stretches without a job are skipped."""
        low = self._facts("next_range", {"low": 0})["first"]
        while low is not None:
            tell(low, total)
            yield low
            low = self._facts("next_range", {"low": low + RANGE_IDS})["first"]

    def _acknowledged(self, acknowledged: Collection[int]) -> None:
        ids = sorted(acknowledged)
        moments = acknowledged if isinstance(acknowledged, Mapping) else {}
        self.notes.looked["acknowledged"] = len(ids)
        for start in range(0, len(ids), RANGE_IDS):
            some = ids[start : start + RANGE_IDS]
            asked = {"acknowledged": some, "moments": [moments.get(job_id) for job_id in some]}
            for check in OF_ACKNOWLEDGED:
                self._check(check, {**asked, "first": some[0], "last": some[-1]})

    def _effects(self, effects: Effects) -> None:
        name = effects.table.split(".")
        table = Identifier(*name)
        asked = {"table": table.as_string(self._conn)}
        columns = self._facts("effects_columns", asked)["columns"] if len(name) <= 2 else ()
        if not {"job_id", "token"} <= set(columns):
            raise InputError(
                f"no table {effects.table[:200]!a} with columns job_id and token is to be seen here"
            )
        self.notes.looked.update(self._facts("effects", {}, table))
        for check in OF_EFFECTS:
            self._check(check, {"tasks": list(effects.tasks)}, table)

    def _check(self, check: AuditCheck, args: dict[str, Any], table: Identifier | None = None) -> None:
        question = _question(check.name, table)
        self._spend()
        with self._conn.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(question, {**args, "most": ANSWERS_MAX}, prepare=self._prepare)
            self.notes.write(check, cursor.fetchall())

    def _facts(
        self, name: str, args: dict[str, Any] | None = None, table: Identifier | None = None
    ) -> dict[str, Any]:
        self._spend()
        with self._conn.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(_question(name, table), args, prepare=self._prepare).fetchone() or {}

    def _spend(self) -> None:
        """Give the next statement the remaining time, and raise where none is left."""
        if self._ends is None:
            return
        left = round((self._ends - time.monotonic()) * 1000)
        if left <= 0:
            raise TimeIsUp
        self._conn.execute(source("statement_timeout").encode(), {"milliseconds": str(left)})


def _question(name: str, table: Identifier | None) -> bytes | Composed:
    text = source(name)
    return text.encode() if table is None else SQL(text).format(effects=table)
