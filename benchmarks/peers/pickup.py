"""How soon an idle worker starts a job after it was enqueued."""

import time
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.crew import PeerWorkers
from benchmarks.peers.options import Options
from benchmarks.peers.peer import Peer, admin, query


def latency(peer: Peer, options: Options) -> dict[str, Any]:
    """A job every few milliseconds, one idle worker: from the return of enqueue to the handler's start."""
    database = peer.fresh()
    crew = PeerWorkers(peer, database, 1, "latency", BENCH_MODE="latency")
    try:
        time.sleep(options.warm)
        # Two jobs to throw away, so that the worker is certainly up and idle.
        peer.call("latency", database, 2, 100)
        wait_for(crew, 2, 25)
        count = int(options.latency_s * 1000 / options.latency_ms)
        base, first = time.time_ns(), _next_transaction(database)
        sent = peer.call("latency", database, count, options.latency_ms)["sent"]
        wait_for(crew, count + 2, 10)
        started = {
            line.seq: line.at_ns for line in crew.lines() if line.what == "start" and line.at_ns >= base
        }
    finally:
        crew.stop()
    seen = [(started[seq], called, returned) for seq, called, returned in sent if seq in started]
    if not seen:
        return {"latency_got": 0, "latency_log": crew.log(0)}
    counts = {
        "lat": [start - returned for start, _, returned in seen],
        "call": [start - called for start, called, _ in seen],
        "commit": from_commit(seen, _commits(database, first)) if peer.meta["backend"] == "postgres" else [],
    }
    told = {
        f"{count}_{name}": percentile(sorted(times), share) / 1e6
        for count, times in counts.items()
        for name, share in SHARES.items()
        if times
    }
    return {"latency_got": len(seen), "lat_max": max(counts["lat"]) / 1e6, **told}


def from_commit(seen: Sequence[tuple[int, int, int]], commits: Sequence[int]) -> list[int]:
    """From the moment a job was committed, by the server's own clock: the first commit within its call.

    >>> from_commit([(90, 10, 50)], [5, 20, 40])
    [70]
    """
    return [
        start - commits[first]
        for start, called, returned in seen
        if (first := bisect_left(commits, called)) < bisect_left(commits, returned)
    ]


SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _next_transaction(database: str) -> int:
    with admin(database) as conn:
        (row,) = query(conn, "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next")
    return int(row["next"])


def _commits(database: str, first: int) -> list[int]:
    """When each transaction since then was committed, in order, by the server's own clock, in nanoseconds."""
    last = _next_transaction(database) - 1
    with admin(database) as conn:
        found = conn.execute(
            "select (extract(epoch from pg_xact_commit_timestamp(number::text::xid)) * 1e6)::bigint * 1000"
            " as at from generate_series(%s::bigint, %s::bigint) as number"
            " where pg_xact_status(number::text::xid8) = 'committed'",
            [first, last],
        ).fetchall()
    return sorted(row["at"] for row in found if row["at"] is not None)


def wait_for(crew: PeerWorkers, handled: int, seconds: float) -> None:
    end = time.time() + seconds
    while time.time() < end and crew.counts()[0] < handled:
        time.sleep(0.05)
