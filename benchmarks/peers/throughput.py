"""Enqueuing and draining: how fast, and what it costs the database."""

import statistics
import time
from dataclasses import dataclass
from typing import Any

from psycopg.rows import DictRow

from benchmarks.peers.crew import PeerWorkers
from benchmarks.peers.options import Options
from benchmarks.peers.peer import Conn, Peer, admin

Row = dict[str, Any]


def single(peer: Peer, options: Options) -> Row:
    """One awaited enqueue at a time."""
    made = peer.call("single", peer.fresh(), options.jobs, options.single_cap)
    return {"single_per_s": made["jobs"] / made["seconds"], "single_jobs": made["jobs"]}


def drain(peer: Peer, options: Options, workers: int) -> Row:
    """Fill the queue in bulk, then start workers on it."""
    database = peer.fresh()
    made = peer.call("bulk", database, options.jobs, options.bulk_cap, timeout=600)
    backlog: int = made["jobs"]
    word = f"drain{workers}"
    row: Row = {
        ("bulk_per_s" if workers == 1 else f"bulk{workers}_per_s"): backlog / made["seconds"],
        f"{word}_backlog": backlog,
    }
    with admin(database) as conn:
        conn.execute("set statement_timeout = '5s'")
        conn.execute("analyze")  # autovacuum would have done it to a standing backlog; the same for all
        conn.execute("select pg_stat_force_next_flush()")
        before = tuples(conn)
        drained = empty(peer, conn, database, backlog, options, workers)
        time.sleep(1.2)  # let the backends that exit flush their statistics
        row |= {f"{word}_{name}": value for name, value in drained.told().items()}
        if peer.meta["backend"] == "postgres" and drained.completed:
            cost = costs(before, tuples(conn), drained)
            row |= {f"{word}_{name}": value for name, value in cost.items()}
    return row


def is_short(row: Row, phase: str, options: Options) -> bool:
    """Whether this was a drain so short that a hiccup of the machine is a large part of it."""
    return bool(row.get(f"{phase}_complete")) and row[f"{phase}_seconds"] < options.short_s


def middle_of(rows: list[Row], phase: str) -> Row:
    """Of several turns the one in the middle, by its rate; a turn that failed counts as the slowest.

    >>> turns = [{"drain1_per_s": 7.0, "bulk_per_s": 1.0}, {"drain1_error": "lost"}, {"drain1_per_s": 9.0}]
    >>> middle_of(turns, "drain1")
    {'drain1_per_s': 7.0, 'bulk_per_s': 1.0, 'drain1_turns': [0, 7, 9]}
    """
    if len(rows) == 1:
        return rows[0]
    in_order = sorted(rows, key=lambda row: row.get(f"{phase}_per_s", 0.0))
    row = dict(in_order[(len(rows) - 1) // 2])
    for bulk in ("bulk_per_s", "bulk2_per_s"):
        if told := [turn[bulk] for turn in rows if bulk in turn]:
            row[bulk] = statistics.median_low(told)
    return row | {f"{phase}_turns": [round(turn.get(f"{phase}_per_s", 0.0)) for turn in in_order]}


@dataclass(frozen=True, slots=True)
class Drained:
    """What became of a backlog."""

    seconds: float
    complete: bool
    completed: int
    handled: int
    wal: int
    ended: list[int]
    log: list[str]

    def told(self) -> Row:
        row = {
            "per_s": self.completed / self.seconds if self.handled else 0.0,
            "seconds": self.seconds,
            "complete": self.complete,
            "completed": self.completed,
            "handled": self.handled,
            "dead_procs": [] if self.complete else self.ended,
        }
        return row if self.complete else {**row, "log": self.log}


def empty(
    peer: Peer, conn: Conn, database: str, backlog: int, options: Options, workers: int, mode: str = "drain"
) -> Drained:
    """Run workers until the tables say that nothing is unfinished, or the cap is reached.

    The clock runs from the first handler's start. The database is not asked until all handlers have run.
    """
    wal_before = wal_position(conn)
    crew = PeerWorkers(peer, database, workers, f"{mode}{workers}", BENCH_MODE=mode)
    try:
        complete = wait_until_empty(crew, peer, conn, database, backlog, options)
        ended_at = time.time()
        handled, first = crew.counts()
        left = 0 if complete else peer.remaining(conn, database)
        wal = wal_position(conn) - wal_before
        seconds = ended_at - (first or time.time_ns()) / 1e9
    finally:
        crew.stop(0.5)
    return Drained(
        seconds=seconds, complete=complete, completed=backlog - left, handled=handled, wal=wal,
        ended=crew.ended(), log=crew.log(0),
    )  # fmt: skip


def wait_until_empty(
    crew: PeerWorkers, peer: Peer, conn: Conn, database: str, backlog: int, options: Options
) -> bool:
    spawned = time.time()
    while time.time() - spawned < options.drain_cap + 15:
        handled, first = crew.counts()
        if first and time.time() - first / 1e9 > options.drain_cap:
            return False
        if handled >= backlog and peer.remaining(conn, database) == 0:
            return True
        if len(crew.ended()) == len(crew.processes):
            return False
        time.sleep(0.01)
    return False


def costs(before: DictRow, after: DictRow, drained: Drained) -> Row:
    """What a drained job cost the database."""
    grown = {name: after[name] - before[name] for name in after}
    jobs = drained.completed
    return {
        "wal_per_job": drained.wal / jobs,
        "dead_tuples": after["dead"],
        "killed_per_job": (grown["updated"] + grown["deleted"]) / jobs,
        "ins_per_job": grown["inserted"] / jobs,
        "hot_share": grown["hot"] / max(1, grown["updated"]),
        "autovacuums": grown["autovacuums"],
    }


def wal_position(conn: Conn) -> int:
    row = conn.execute("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint as at").fetchone()
    assert row is not None
    return int(row["at"])


def tuples(conn: Conn) -> DictRow:
    row = conn.execute(
        """
        select coalesce(sum(n_dead_tup), 0)::bigint as dead, coalesce(sum(n_tup_ins), 0)::bigint as inserted,
               coalesce(sum(n_tup_upd), 0)::bigint as updated, coalesce(sum(n_tup_hot_upd), 0)::bigint as hot,
               coalesce(sum(n_tup_del), 0)::bigint as deleted,
               coalesce(sum(autovacuum_count), 0)::bigint as autovacuums
        from pg_stat_user_tables
        """
    ).fetchone()
    assert row is not None
    return row
