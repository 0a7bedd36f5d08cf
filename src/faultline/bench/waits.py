"""The latency probe: how long jobs waited for their handlers, and how long until their end was recorded."""

from typing import Any

from faultline.bench.load import Offered
from faultline.bench.questions import ask
from faultline.bench.run import Run
from faultline.bench.spread import NAMES, spread


def waits(run: Run, sent: Offered) -> dict[str, Any]:
    """Percentiles: `pickup_ms` by the handlers' own stamps, `end_ms` by the ledger."""
    begun = run.workers.boards.moments(sent.jobs)
    return {**spread(sent.waits_ms(begun), "pickup_ms"), **_ends(run)}


def _ends(run: Run) -> dict[str, Any]:
    (found,) = ask(run.probe.conn, "latencies", task="stamp").values()
    return dict(zip((f"end_ms_{name}" for name in NAMES), found or [None] * len(NAMES), strict=True))
