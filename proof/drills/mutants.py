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
"""A function, what its source says, and what it says instead."""


@dataclass(frozen=True)
class Mutant:
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
    Mutant("lease-race", "effects commit apart from the job's success", worker="effects_apart"),
    Mutant(
        "worker-crash", "reap does not count the crash", (("reap", "crashed => true", "crashed => false"),)
    ),
    Mutant("crash-mid-apply", "effects commit apart from the job's success", worker="effects_apart"),
    Mutant(
        "self-zombie",
        "complete goes by the job alone",
        (
            ("complete", "\n    and job.token = complete.token", ""),
            ("complete", "\n    and job.claim = complete.claim", ""),
        ),
    ),
    Mutant("self-zombie", "two attempts of one job run in one worker", worker="two_at_once"),
    Mutant(
        "duplicate-submission",
        "keys without their table",
        (("take_key", "begin\n  loop", "begin\n  return take_key.job_id;\n  loop"),),
    ),
    Mutant(
        "duplicate-submission",
        "a key does not ask what was asked for",
        (("take_key", "held.request <> take_key.request", "false"),),
    ),
    Mutant(
        "database-restart", "nobody asks the rows about a commit without a reply", worker="guess_lost_commits"
    ),
    Mutant(
        "database-restart",
        "a commit without a reply is taken for done",
        (("outcome", "    return 'running';", "    return 'succeeded';"),),
    ),
    Mutant(
        "poison-job",
        "whoever was there when a worker crashed is buried for it",
        (("reap", "crashed => true", "crashed => true, dead_reason => 'crashed'"),),
    ),
    Mutant(
        "failover",
        "tokens begin again on a new timeline",
        (("epoch", "return (known.base + known.timeline - 1) << 40;", "return 0;"),),
    ),
)
