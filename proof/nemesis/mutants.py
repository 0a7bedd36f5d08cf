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

from faultline.worker.transaction import WorkTransaction
from tests.promises.rewriting import rewrite

MUTANT: Final = "NEMESIS_MUTANT"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """What is broken, in words and in deed."""

    says: str
    edits: tuple[tuple[str, str, str], ...] = ()
    """A function, what its source says, and what it says instead."""
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


BY_ID = "job.id = done.id and job.token = done.token and job.claim = done.claim"
MUTANTS: Final[Mapping[str, Mutant]] = MappingProxyType(
    {
        "complete-by-id": Mutant(
            says="complete goes by the job's id alone: whoever says it is done ends it",
            edits=(
                ("complete", "\n    and job.token = complete.token", ""),
                ("complete", "\n    and job.claim = complete.claim", ""),
            ),
        ),
        "complete-many-by-id": Mutant(
            says="a batch of completions goes by the jobs' ids alone",
            edits=(("complete_many", BY_ID, "job.id = done.id and job.claim is not null"),),
        ),
        "not-durable": Mutant(
            says="commits are answered before they are on disk, and nobody raises that",
            edits=(("be_durable", "perform set_config('synchronous_commit', 'on', true);", "null;"),),
            statement="alter database storm set synchronous_commit = off",
        ),
        "reap-uncounted": Mutant(
            says="a lease that ran out is not counted as a crash",
            edits=(("reap", "crashed => true", "crashed => false"),),
        ),
        "claim-takes-running": Mutant(
            says="a claim does not look whether somebody has the job",
            edits=(("claim", "\n        and job.claim is null", ""),),
        ),
        "success-unrecorded": Mutant(
            says="a completion deletes the job and writes no entry, one time in two hundred",
            edits=(
                (
                    "complete",
                    "perform faultline.enter(done, 'succeeded', faultline.now(), result => complete.result);",
                    "if complete.job_id % 200 > 0 then "
                    "perform faultline.enter(done, 'succeeded', faultline.now(), result => complete.result); "
                    "end if;",
                ),
            ),
        ),
        "effects-first": Mutant(
            says="the worker commits the handler's rows before it asks the fence", patch=_effects_first
        ),
    }
)


def break_database(dsn: str, name: str) -> None:
    """Make the mutant's change in the run's own database; loud when the source is not as it knows it."""
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
