"""How soon an idle worker starts a job after it was enqueued."""

import time
from typing import Any

from benchmarks.peers.crew import Crew
from benchmarks.peers.options import Options
from benchmarks.peers.peer import Peer


def latency(peer: Peer, options: Options) -> dict[str, Any]:
    """A job every few milliseconds, one idle worker: from the return of enqueue to the handler's start."""
    database = peer.fresh()
    crew = Crew(peer, database, 1, "latency", BENCH_MODE="latency")
    try:
        time.sleep(options.warm)
        # Two jobs to throw away, so that the worker is certainly up and idle.
        peer.call("latency", database, 2, 100)
        wait_for(crew, 2, 25)
        count = int(options.latency_s * 1000 / options.latency_ms)
        base = time.time_ns()
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
    from_return = sorted((start - returned) / 1e6 for start, _, returned in seen)
    from_call = sorted((start - called) / 1e6 for start, called, _ in seen)
    return {
        "latency_got": len(seen),
        **{f"lat_{name}": percentile(from_return, share) for name, share in SHARES.items()},
        "lat_max": from_return[-1],
        **{f"call_{name}": percentile(from_call, share) for name, share in SHARES.items()},
    }


SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def wait_for(crew: Crew, handled: int, seconds: float) -> None:
    end = time.time() + seconds
    while time.time() < end and crew.counts()[0] < handled:
        time.sleep(0.05)
