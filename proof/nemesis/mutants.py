"""Small breakages of the shipped SQL or of the worker, each of which a storm must find.

A checker that has never found anything may be blind. `--mutant NAME` makes one change, in the run's own
database or in its own worker processes, and the run must then end with a violation.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import psycopg

from faultline.worker.transactions.transaction import WorkTransaction
from tests.promises.rewriting import rewrite

MUTANT: Final = "NEMESIS_MUTANT"


@dataclass(frozen=True, kw_only=True)
class NemesisMutant:
    """What is broken, in words and in deed."""

    says: str
    edits: tuple[tuple[str, str, str], ...] = ()
    """A function, a text of its source, and the replacement."""
    statement: str = ""
    patch: Callable[[], None] | None = None
    """A change to the worker's or the client's own code, made in each of their processes."""


def _effects_first() -> None:
    """The handler's rows are committed before the fence has been asked."""

    def first(self: Any, finish: Callable[[Any], Any]) -> Any:
        self._conn.pgconn.exec_(b"COMMIT; BEGIN")
        return finish(self)

    plain, in_loop = WorkTransaction._complete, WorkTransaction._acomplete
    WorkTransaction._complete = lambda self: first(self, plain)  # type: ignore[method-assign]
    WorkTransaction._acomplete = lambda self: first(self, in_loop)  # type: ignore[method-assign]


_ENTRY = "if done.keep is distinct from 'nothing' then"
BY_ID = "job.id = done.id and job.token = done.token and job.claim = done.claim"
MUTANTS: Final[Mapping[str, NemesisMutant]] = MappingProxyType(
    {
        "complete-by-id": NemesisMutant(
            says="complete goes by the job's id alone: any worker that says it is done ends it",
            edits=(
                ("complete", "\n    and job.token = complete.token", ""),
                ("complete", "\n    and job.claim = complete.claim", ""),
            ),
        ),
        "complete-many-by-id": NemesisMutant(
            says="a batch of completions goes by the jobs' ids alone",
            edits=(("complete_many", BY_ID, "job.id = done.id and job.claim is not null"),),
        ),
        "not-durable": NemesisMutant(
            says="commits are answered before they are on disk, and no verb raises that",
            edits=(("be_durable", "perform set_config('synchronous_commit', 'on', true);", "null;"),),
            statement="alter database storm set synchronous_commit = off",
        ),
        "reap-uncounted": NemesisMutant(
            says="a lease that ran out is not counted as a crash",
            edits=(("reap", "crashed => true", "crashed => false"),),
        ),
        "claim-takes-running": NemesisMutant(
            says="a claim does not look whether another worker has the job",
            edits=(("claim", "\n        and job.claim is null", ""),),
        ),
        "success-unrecorded": NemesisMutant(
            says="a completion deletes the job and writes no entry, one time in two hundred",
            edits=(
                (
                    "complete",
                    _ENTRY,
                    _ENTRY.replace("then", "and complete.job_id % 200 > 0 then"),
                ),
            ),
        ),
        "effects-first": NemesisMutant(
            says="the worker commits the handler's rows before it asks the fence", patch=_effects_first
        ),
        "limit-unlocked": NemesisMutant(
            says="admissions of a limit do not take turns, and those that meet see the same slots free",
            edits=(
                ("admit", "where l.id = line.limit_id for no key update", "where l.id = line.limit_id"),
                ("admit_in_turn", "given < wanted and", "pg_sleep(0.02) is not null and given < wanted and"),
            ),
        ),
        "key-uncounted": NemesisMutant(
            says="an admission does not count what a key holds",
            edits=(("admit_in_turn", "own.per_key - held.many", "own.per_key"),),
        ),
        "place-redrawn": NemesisMutant(
            says="a job in strict order comes back to its gate as the last",
            edits=(("place_at_gate", "then place_at_gate.id", "then nextval('faultline.places')"),),
        ),
        "rate-uncharged": NemesisMutant(
            says="an admission takes no tokens from the bucket of its rate",
            edits=(("charge", " + charge.starts / known.rate * interval '1 second'", ""),),
        ),
        "schedule-uncompared": NemesisMutant(
            says="a schedule is fired whatever its next time is, so two watchdogs fire one occurrence",
            edits=(
                ("fire", "mine.next_at = asked.due and mine.revision = asked.revision and ", ""),
                ("fire", "enqueued_once do nothing", "enqueued_once do update set job_id = excluded.job_id"),
            ),
        ),
        "schedule-leaps": NemesisMutant(
            says="one firing in twenty moves the next time a second too far",
            edits=(
                (
                    "fire",
                    "set next_at = asked.next,",
                    "set next_at = asked.next + (random() < 0.05)::int * interval '1 second',",
                ),
            ),
        ),
    }
)


def break_database(dsn: str, name: str) -> None:
    """Make the mutant's change in the run's own database; an error when the source does not have the text."""
    mutant = MUTANTS[name]
    for function, old, new in mutant.edits:
        rewrite(dsn, function, old, new)
    if mutant.statement:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(mutant.statement.encode())


def break_worker() -> None:
    """Make the mutant's change in this process, if its environment names one that has any."""
    mutant = MUTANTS.get(os.environ.get(MUTANT, ""))
    if mutant is not None and mutant.patch is not None:
        mutant.patch()
