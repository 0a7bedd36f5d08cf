"""Every scenario by its name, in the order in which `faultline bench all` runs them."""

from typing import Final

from faultline.bench.scenario import Scenario
from faultline.bench.scenarios import (
    backlog,
    drain,
    enqueue,
    failing,
    handlers,
    http,
    idle,
    keyed,
    kill,
    late,
    memory,
    offered,
    payload,
    pickup,
    pinned,
    queues,
    remote,
    scheduled,
    sustained,
)

_ALL: Final = (
    drain, enqueue, http, pickup, offered, sustained, handlers, payload, queues, keyed, failing, late, kill,
    backlog, scheduled, pinned, memory, idle, remote,
)  # fmt: skip

SCENARIOS: Final[dict[str, Scenario]] = {module.SCENARIO.name: module.SCENARIO for module in _ALL}
