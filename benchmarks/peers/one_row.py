"""Handlers that insert a row: how many a second, each library in its own way."""

import dataclasses
from typing import Any

from benchmarks.peers.options import Options
from benchmarks.peers.peer import Peer, admin
from benchmarks.peers.throughput import costs, empty, tuples

WORD = "one_row"


def one_row(peer: Peer, options: Options) -> dict[str, Any]:
    """Fill the queue, start one worker on it, and count the rows that its handlers left.

    A library that finishes a job apart from its row may leave more rows than jobs. Here no worker dies, so
    both numbers have to be the same.
    """
    database = peer.fresh()
    made = peer.call("bulk", database, options.rows, options.bulk_cap, timeout=600)
    backlog: int = made["jobs"]
    with admin(database) as conn:
        conn.execute("set statement_timeout = '5s'")
        conn.execute("analyze")
        conn.execute("select pg_stat_force_next_flush()")
        before = tuples(conn)
        capped = dataclasses.replace(options, drain_cap=options.rows_cap)
        drained = empty(peer, conn, database, backlog, capped, workers=1, mode=WORD)
        row = conn.execute("select count(*) as rows from bench_effects").fetchone()
        assert row is not None
        told = {**drained.told(), "backlog": backlog, "rows": row["rows"]}
        if drained.completed:
            told["wal_per_job"] = costs(before, tuples(conn), drained)["wal_per_job"]
    if drained.complete and row["rows"] != backlog:
        told["error"] = f"{backlog} jobs left {row['rows']} rows"
    return {f"{WORD}_{name}": value for name, value in told.items()}
