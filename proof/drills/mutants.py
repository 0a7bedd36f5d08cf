"""A sabotage for each drill: a breakage of the shipped SQL or the worker, which its verdict must notice."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.promises.rewriting import rewrite

BROKEN_WORKER: Final = Path(__file__).with_name("broken_worker")

Edit = tuple[str, str, str]
"""A function, a text of its source, and the replacement."""


@dataclass(frozen=True)
class DrillMutant:
    """What is broken, and the drill that must turn red."""

    drill: str
    name: str
    edits: tuple[Edit, ...] = ()
    worker: str = ""

    def break_sql(self, dsn: str) -> None:
        for function, old, new in self.edits:
            rewrite(dsn, function, old, new)

    @contextmanager
    def break_workers(self) -> Iterator[None]:
        """Every process that is started in this block is broken as it starts."""
        before = dict(os.environ)
        if self.worker:
            os.environ |= {"PYTHONPATH": str(BROKEN_WORKER), "FAULTLINE_MUTANT": self.worker}
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


MUTANTS: Final = (
    DrillMutant("lease-race", "effects commit apart from the job's success", worker="effects_apart"),
    DrillMutant(
        "worker-crash", "reap does not count the crash", (("reap", "crashed => true", "crashed => false"),)
    ),
    DrillMutant("crash-mid-apply", "effects commit apart from the job's success", worker="effects_apart"),
    DrillMutant(
        "self-zombie",
        "complete goes by the job alone",
        (
            ("complete", "\n    and job.token = complete.token", ""),
            ("complete", "\n    and job.claim = complete.claim", ""),
        ),
    ),
    DrillMutant("self-zombie", "two attempts of one job run in one worker", worker="two_at_once"),
    DrillMutant(
        "duplicate-submission",
        "keys without their table",
        (("take_key", "begin\n  loop", "begin\n  return take_key.job_id;\n  loop"),),
    ),
    DrillMutant(
        "duplicate-submission",
        "a key does not ask what was asked for",
        (("take_key", "held.request <> take_key.request", "false"),),
    ),
    DrillMutant(
        "database-restart", "no look at the rows after a commit without a reply", worker="guess_lost_commits"
    ),
    DrillMutant(
        "database-restart",
        "a commit without a reply is taken for done",
        (("outcome", "    return 'running';", "    return 'succeeded';"),),
    ),
    DrillMutant(
        "poison-job",
        "every job of a worker that crashed is buried for it",
        (("reap", "crashed => true", "crashed => true, dead_reason => 'crashed'"),),
    ),
    DrillMutant(
        "failover",
        "tokens begin again on a new timeline",
        (("epoch", "return (known.base + known.timeline - 1) << 40;", "return 0;"),),
    ),
)
