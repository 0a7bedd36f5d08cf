"""A producer and a worker at once: at a held depth, and at an offered rate."""

import time
from typing import Any

from benchmarks.peers.crew import PeerWorkers
from benchmarks.peers.options import Options
from benchmarks.peers.peer import Peer
from benchmarks.peers.pickup import percentile, wait_for

Row = dict[str, Any]


def sustained(peer: Peer, options: Options) -> Row:
    """A producer keeps so many jobs waiting while one worker drains: jobs begun per second."""
    database = peer.fresh()
    crew = PeerWorkers(peer, database, 1, "sustained", BENCH_MODE="drain")
    try:
        time.sleep(options.warm)
        told = peer.call(
            "sustain", database, options.depth, options.sustained_s, BENCH_RUN_DIR=str(crew.folder)
        )
    finally:
        crew.stop(0.5)
    return {
        "sustained_per_s": told["handled"] / told["seconds"],
        "sustained_enqueued": told["jobs"],
        "sustained_log": crew.log(0) if not told["handled"] else [],
    }


def offered(peer: Peer, options: Options) -> Row:
    """Jobs on a timetable, one worker: from the moment a job was due to its handler's start."""
    database = peer.fresh()
    crew = PeerWorkers(peer, database, 1, "offered", BENCH_MODE="latency")
    try:
        time.sleep(options.warm)
        wanted = int(options.rate * options.offered_s)
        sent = peer.call("offer", database, options.rate, options.offered_s)["sent"]
        wait_for(crew, len(sent), 5)
        started = {line.seq: line.at_ns for line in crew.lines() if line.what == "start"}
    finally:
        crew.stop(0.5)
    waits = sorted((started[seq] - due) / 1e6 for seq, due in sent if seq in started)
    if not waits:
        return {"offered_kept": 0.0, "offered_log": crew.log(0)}
    return {
        "offered_kept": len(waits) / wanted,
        "offered_p50": percentile(waits, 0.5),
        "offered_p99": percentile(waits, 0.99),
    }
