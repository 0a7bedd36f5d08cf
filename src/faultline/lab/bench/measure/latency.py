"""The latency probe: how long jobs waited for their handlers, and how long until their end was recorded."""

from typing import Any

from faultline.lab.bench.load import Offered
from faultline.lab.bench.measure.questions import ask
from faultline.lab.bench.measure.spread import NAMES, spread
from faultline.lab.bench.run_bench import BenchRun


def waits(run: BenchRun, sent: Offered) -> dict[str, Any]:
    """Percentiles: `pickup_ms` by the handlers' own stamps, `end_ms` by the ledger."""
    begun = run.workers.boards.moments(sent.jobs)
    return {**spread(sent.waits_ms(begun), "pickup_ms"), **_ends(run)}


def _ends(run: BenchRun) -> dict[str, Any]:
    (found,) = ask(run.probe.conn, "latencies", task="stamp").values()
    return dict(zip((f"end_ms_{name}" for name in NAMES), found or [None] * len(NAMES), strict=True))
