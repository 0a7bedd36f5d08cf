"""The meter: what a stretch of work cost on both sides, for each job of it."""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from faultline.lab.bench.measure.server_probe import ServerProbe
from faultline.lab.bench.measure.weight import cpu_seconds


@dataclass
class Meter:
    """Counters are read before the workers start and after they are gone: they report theirs late.

    CPU is read while they live, from `start` to `stop`.
    """

    probe: ServerProbe
    _before: dict[str, Any] = field(default_factory=dict)
    _after: dict[str, Any] = field(default_factory=dict)
    _pids: list[int] = field(default_factory=list)
    _cpu: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._before = self.probe.counters()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._after = self.probe.final_counters() | {"wal_bytes": self._after["wal_bytes"]}

    def start(self, pids: list[int]) -> None:
        """The clock starts for these workers; one that dies before it stops takes its CPU with it."""
        self._pids = list(pids)
        self._cpu = {name: (used, None) for name, used in self._used().items()}

    def stop(self) -> None:
        self._after = self.probe.counters()
        self._cpu = {name: (self._cpu[name][0], used) for name, used in self._used().items()}

    def _used(self) -> dict[str, float | None]:
        return {
            "client": cpu_seconds(self._pids),
            "server": self.probe.cpu_seconds(),
            "session": self.probe.session_cpu_seconds(),
        }

    def cpu_seconds(self, side: str) -> float | None:
        """What one side used between start and stop; None where the machine does not tell."""
        before, after = self._cpu[side]
        return None if before is None or after is None else after - before

    def row(self, jobs: int) -> dict[str, float | None]:
        """The cost of one job."""
        spent = {name: self._after[name] - self._before[name] for name in self._before}
        row: dict[str, float | None] = {
            f"{name}_per_job": spent[name] / jobs for name in ("wal_bytes", "commits", "rows_killed")
        }
        row["hot_share"] = spent["hot_updates"] / spent["updates"] if spent["updates"] else None
        for side in self._cpu:
            used = self.cpu_seconds(side)
            row[f"{side}_cpu_us_per_job"] = None if used is None else used / jobs * 1e6
        return row
