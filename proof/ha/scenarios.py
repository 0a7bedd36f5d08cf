"""The scenarios: a fault each, what it must bring about, and what it may cost."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from proof.ha import faults, restores, upgrades
from proof.ha.faults import FaultStep
from proof.ha.judge import Expected
from proof.ha.load import Load

SYNC: Final = Expected()
ASYNC: Final = Expected(may_lose=True)
LOSSY: Final = Expected(may_lose=True, must_lose=True)


@dataclass(frozen=True)
class HaScenario:
    """A fault on a ground: the Patroni cluster, or servers of its own."""

    name: str
    says: str
    fault: Callable[[Any, Load], Iterator[FaultStep]]
    expected: Expected = SYNC
    sync: bool | str = True
    settings: Mapping[str, object] = field(default_factory=dict)
    """Of Patroni, for this scenario."""

    ground: Callable[..., Any] | None = None
    """Makes the ground, where it is not the cluster."""

    by_name_only: bool = False
    """Not a part of a run of all: it shows what a mistake costs."""


def _all() -> Iterator[HaScenario]:
    freeze = faults.freeze_for(45)
    failsafe = {"failsafe_mode": True}
    still = faults.standby_stands_still
    yield HaScenario("switchover", "an operator's switchover to the synchronous standby", faults.switchover)
    yield HaScenario("kill-sync", "the primary's machine dies", faults.kill_primary)
    yield HaScenario("cut-kill-sync", "replication is cut, then the primary dies", faults.cut_then_kill)
    yield HaScenario(
        "keyed-retry", "a keyed enqueue is given up and sent again, unreplicated", faults.keyed_retry
    )
    yield HaScenario("freeze-sync", "the primary stands still for 45 s and wakes", freeze)
    yield HaScenario("freeze-long", "the primary stands still for 120 s", faults.freeze_for(120))
    yield HaScenario(
        "freeze-postgres", "PostgreSQL stands still, Patroni does not", faults.freeze_for(60, patroni=False)
    )
    yield HaScenario("no-etcd-for-a", "the primary cannot reach etcd", faults.no_etcd_for_a)
    yield HaScenario("cable", "the primary's cable is pulled for 40 s", faults.cable)
    yield HaScenario("etcd-away", "all of etcd is away for 40 s", faults.etcd_away)
    calm = Expected(promotions=0)
    yield HaScenario(
        "etcd-away-failsafe", "the same in failsafe mode", faults.etcd_away, calm, settings=failsafe
    )
    yield HaScenario("standby-still", "the synchronous standby stands still", still, calm)
    yield HaScenario("standby-still-quorum", "the same with quorum commit", still, calm, "quorum")
    yield HaScenario(
        "cut-kill-async", "replication is cut, then the primary dies", faults.cut_then_kill, LOSSY, sync=False
    )
    yield HaScenario("freeze-async", "the primary stands still for 45 s and wakes", freeze, ASYNC, sync=False)
    yield HaScenario("cable-async", "the primary's cable is pulled for 40 s", faults.cable, ASYNC, sync=False)
    twice = Expected(promotions=2, may_lose=True, must_lose=True, one_timeline=True)
    yield HaScenario(
        "two-histories", "two standbys that never met lead in turn", faults.two_histories, twice, sync=False
    )
    yield from _of_servers()


def _of_servers() -> Iterator[HaScenario]:
    upgrade, logical = upgrades.OnPgUpgrade, upgrades.OnLogical
    yield HaScenario("pg-upgrade", "15 becomes 18 by pg_upgrade", upgrades.pg_upgrade, ground=upgrade)
    yield HaScenario(
        "logical", "a switch-over by logical replication, 15 to 18", upgrades.switch, ground=logical
    )
    yield HaScenario(
        "logical-forgotten", "the same, with the sequences forgotten", upgrades.switch_without_sequences,
        ground=logical, by_name_only=True,
    )  # fmt: skip
    moved = Expected(promotions=2, may_lose=True, must_lose=True)
    alone = restores.OnRestore
    yield HaScenario("pitr", "a base backup restored to a moment", restores.to_a_moment, LOSSY, ground=alone)
    yield HaScenario(
        "snapshot-stopped", "a copy of a stopped server restored", restores.stopped_copy, moved, ground=alone
    )
    yield HaScenario(
        "snapshot-crash", "a crash-consistent copy restored", restores.live_copy, LOSSY, ground=alone
    )


ALL: Final = {scenario.name: scenario for scenario in _all()}
