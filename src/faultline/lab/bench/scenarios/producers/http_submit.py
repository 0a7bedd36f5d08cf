"""HTTP: submits to a server with connections kept alive, by how many there are and by jobs in a request."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from faultline.errors import FaultlineError
from faultline.lab.bench.case import Case, CaseResult, CaseRunner, Row
from faultline.lab.bench.http_load import HttpLoad
from faultline.lab.bench.measure.questions import ask
from faultline.lab.bench.measure.spread import spread
from faultline.lab.bench.measure.weight import resident_mb
from faultline.lab.bench.run_bench import proof
from faultline.lab.bench.scenario import BenchScenario
from faultline.server.auth import mint
from faultline.store import calls
from faultline.store.driver.connect import connect

COMMAND = (sys.executable, "-P", "-m", "faultline", "server")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSubmitSize:
    """Connections and jobs a request, and for how many seconds each pair is tried."""

    pairs: tuple[tuple[int, int], ...] = ((1, 1), (16, 1), (64, 1), (128, 1), (4, 100), (4, 1_000))
    seconds: float = 5.0


def cases(stand: CaseRunner, size: HttpSubmitSize) -> Iterator[CaseResult]:
    for connections, batch in size.pairs:
        with (
            stand.case(f"{connections} connections, {batch:,} a request") as case,
            _server(case) as (port, key, pid),
        ):
            load = HttpLoad(
                host="127.0.0.1",
                port=port,
                key=key,
                connections=connections,
                batch=batch,
                seconds=size.seconds,
            )
            row = _submit(case, load, pid)
            yield CaseResult(row | proof(case, row["jobs"]))


@contextmanager
def _server(case: Case) -> Iterator[tuple[int, str, int]]:
    """`faultline server` in a process of its own: its port, a key for it, and its pid."""
    key = mint()
    case.store.run(calls.create_key(key.id, key.hash, "bench", ["enqueue"]))
    process = subprocess.Popen(
        [*COMMAND, "--http", "127.0.0.1:0", "--no-watchdog", "--log", "lines"],
        env={**os.environ, "FAULTLINE_DSN": case.dsn}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "listening for HTTP" in line:
                yield int(line.rpartition(":")[2]), key.text, process.pid
                return
        raise FaultlineError("the server of the bench ended before it listened")
    finally:
        process.terminate()
        process.communicate()


def _submit(case: Case, load: HttpLoad, pid: int) -> Row:
    """Have another process send, so that its CPU is not the server's."""
    case.told("submit", 0, 1)
    with connect(case.dsn) as conn:
        before = ask(conn, "counters")
        sent = subprocess.run(
            [sys.executable, "-P", "-m", "faultline.lab.bench.http_load"], input=json.dumps(asdict(load)),
            stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        after = ask(conn, "counters")
    told = json.loads(sent.stdout)
    if told["refused"]:
        raise FaultlineError(f"{told['refused']} requests of the bench were refused")
    times = told["times"]
    jobs, seconds = load.batch * len(times), told["seconds"]
    return {
        "case": case.label, "connections": load.connections, "batch": load.batch, "jobs": jobs,
        "seconds": seconds, "enqueued_per_second": jobs / seconds, "calls_per_second": len(times) / seconds,
        **spread(times, "call_ms"), "wal_bytes_per_job": (after["wal_bytes"] - before["wal_bytes"]) / jobs,
        "server_mb": resident_mb(pid),
    }  # fmt: skip


SCENARIO = BenchScenario(
    name="http",
    summary="submits over HTTP to one server process, connections kept alive, one to 1,000 jobs a request",
    full=HttpSubmitSize(),
    quick=HttpSubmitSize(pairs=((8, 1), (2, 100)), seconds=0.5),
    cases=cases,
    columns=(
        "connections batch enqueued_per_second calls_per_second call_ms_p50 call_ms_p99 wal_bytes_per_job "
        "server_mb"
    ),
)
