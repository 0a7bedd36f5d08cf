"""Every scenario by its name, in the order in which `faultline bench all` runs them."""

from typing import Final

from faultline.lab.bench.scenario import BenchScenario
from faultline.lab.bench.scenarios.latency import (
    late_commits,
    offered_rates,
    pickup,
    pinned_horizon,
    repeated_kill,
    scheduled,
)
from faultline.lab.bench.scenarios.producers import enqueue, gathered, http_submit, idle, memory
from faultline.lab.bench.scenarios.throughput import (
    backlog,
    drain,
    failing,
    handlers,
    keyed,
    many_queues,
    one_row,
    payload,
    remote_drain,
    sustained,
)

_ALL: Final = (
    drain, enqueue, gathered, http_submit, pickup, offered_rates, sustained, handlers, payload, many_queues,
    keyed, failing, late_commits, repeated_kill, backlog, scheduled, pinned_horizon, memory, idle,
    remote_drain, one_row,
)  # fmt: skip

SCENARIOS: Final[dict[str, BenchScenario]] = {module.SCENARIO.name: module.SCENARIO for module in _ALL}
