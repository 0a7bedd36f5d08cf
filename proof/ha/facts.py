"""What a run left behind, as plain values: producers' answers, workers' notes, rows, logs."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg

LOUD: Final = ("warning", "error", "critical")


class Ack(NamedTuple):
    """An answer to a producer: an id, or an error by its name."""

    t: float
    who: str
    n: int
    call: float
    """Seconds that this one call took."""
    id: int | None = None
    error: str = ""


class Note(NamedTuple):
    """What the world outside saw of an attempt: `start`, or `committed` after its transaction."""

    t: float
    what: str
    who: str
    id: int
    n: int
    token: int
    key: str = ""


class LogLine(NamedTuple):
    t: float
    loud: bool
    traceback: bool


class Rows(NamedTuple):
    """What the database holds of this run's jobs, each known by its n."""

    jobs: Mapping[int, tuple[int, str]]
    """The id and state of each."""
    effects: Mapping[int, int]
    """How many effects of each."""
    outcomes: Mapping[str, int]
    """How many attempts ended so, in the ledger."""
    claims: Mapping[tuple[int, int], float]
    """When each job was claimed under each token, as far as this history of the database knows."""

    written: Set[tuple[int, int]] = frozenset()
    """The n and the token of each effect."""


NO_ROWS: Final = Rows({}, {}, {}, {})


@dataclass(frozen=True)
class HaFacts:
    """Everything the judge looks at; times are seconds since 1970."""

    began: float
    promotions: Sequence[float]
    timelines: Sequence[int] = ()
    """The timeline of each promotion."""
    acks: Sequence[Ack] = ()
    notes: Sequence[Note] = ()
    rows: Rows = NO_ROWS
    logs: Mapping[str, Sequence[LogLine]] = field(default_factory=dict)
    exits: Mapping[str, int | str] = field(default_factory=dict)
    workers: Sequence[str] = ()
    producers: Sequence[str] = ()
    pinned: Sequence[str] = ()
    """Workers that know one server only, and have no way to a newer primary."""
    lossy: tuple[float, float] | None = None
    """Between these two, what was acknowledged may be lost where replication is asynchronous."""
    void: Sequence[str] = ()
    """Steps that failed."""
    drained: bool = True
    audit: int = 0
    audit_lost: int | None = None
    """How many acknowledged ids `faultline audit --ids` finds nowhere."""

    @property
    def since(self) -> float:
        """The moment of the last promotion: recovery is counted from it."""
        return self.promotions[-1] if self.promotions else self.began


def read_acks(path: Path) -> list[Ack]:
    names = Ack._fields
    return [Ack(**{name: line[name] for name in names if name in line}) for line in _lines(path)]


def read_notes(path: Path) -> list[Note]:
    names = Note._fields
    return [Note(**{name: line[name] for name in names if name in line}) for line in _lines(path)]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines() if path.exists() else ():
        yield json.loads(line)


def read_log(text: str) -> list[LogLine]:
    """The JSON lines of a log; any other line, such as a traceback of a dying process, counts as loud."""
    found, t = [], 0.0
    for line in text.splitlines():
        try:
            told = json.loads(line)
            t = datetime.fromisoformat(told["at"]).timestamp()
            found.append(LogLine(t, told["level"] in LOUD, "Traceback (most" in line))
        except (ValueError, KeyError, TypeError):
            if line.strip():
                found.append(LogLine(t, True, line.startswith("Traceback (most")))
    return found


def read_rows(conn: psycopg.Connection[Any], first: int, began: float) -> Rows:
    jobs = conn.execute(
        "select (args ->> 'n')::bigint as n, id, state::text from faultline.jobs"
        " where (args ->> 'n')::bigint >= %s",
        [first],
    )
    effects = conn.execute("select n, token from effects").fetchall()
    outcomes = conn.execute(
        "select outcome::text, count(*) from faultline.ledger"
        " where settled_at >= to_timestamp(%s) group by 1",
        [began],
    )
    claims = conn.execute(
        "select entry.job_id, entry.token, extract(epoch from entry.claimed_at)::float8"
        " from faultline.ledger as entry where entry.settled_at >= to_timestamp(%s) and token is not null",
        [began],
    )
    return Rows(
        {n: (job_id, state) for n, job_id, state in jobs},
        Counter(n for n, _ in effects if n >= first),
        dict(outcomes.fetchall()),
        {(job_id, token): t for job_id, token, t in claims if t is not None},
        frozenset(effects),
    )
