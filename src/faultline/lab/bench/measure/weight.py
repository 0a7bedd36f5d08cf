"""What processes weigh and what CPU they used, read from /proc, or asked of `ps` where there is none."""

import contextlib
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Weight:
    """Memory in use: of the workers, of their pacemakers, and of all with shared pages counted once."""

    worker_mb: float
    pacemaker_mb: float
    shared_once_mb: float | None

    @property
    def total_mb(self) -> float:
        return self.worker_mb + self.pacemaker_mb

    def document(self) -> dict[str, float | None]:
        return {**asdict(self), "total_mb": self.total_mb}


def weigh(pids: list[int], children: list[int] | None = None) -> Weight:
    """Weigh worker processes and their children."""
    children = children_of(pids) if children is None else children
    workers, pacemakers = [_memory(pid) for pid in pids], [_memory(pid) for pid in children]
    shares = [share for _, share in (*workers, *pacemakers)]
    return Weight(
        worker_mb=sum(resident for resident, _ in workers) / MB,
        pacemaker_mb=sum(resident for resident, _ in pacemakers) / MB,
        shared_once_mb=None if None in shares else sum(share for share in shares if share) / MB,
    )


def resident_mb(pid: int) -> float:
    """What one process holds in memory."""
    return _memory(pid)[0] / MB


def cpu_seconds(pids: list[int]) -> float | None:
    """CPU the processes have used so far, all their threads; None where the kernel does not tell."""
    try:
        return sum(
            int((task / "schedstat").read_text().split()[0]) / 1e9
            for pid in pids
            for task in (PROC / str(pid) / "task").iterdir()
        )
    except (OSError, ValueError, IndexError):
        return None


def children_of(pids: list[int]) -> list[int]:
    return [child for child, parent in _parents().items() if parent in pids]


def _parents() -> dict[int, int]:
    """Each process and its parent."""
    if not (PROC / "self/stat").exists():
        said = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
        ).stdout
        return {int(pid): int(parent) for pid, parent in (line.split() for line in said.splitlines())}
    found = {}
    for stat in PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it may end while we look
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    return found


def _memory(pid: int) -> tuple[int, int | None]:
    """Resident bytes, and the process's share of them when pages are divided among those that use them."""
    rollup = PROC / str(pid) / "smaps_rollup"
    try:
        fields = dict(line.split(":", 1) for line in rollup.read_text().splitlines()[1:])
        return _kilobytes(fields["Rss"]), _kilobytes(fields["Pss"])
    except (OSError, KeyError):
        said = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout
        return int(said.strip() or 0) * 1024, None


def _kilobytes(field: str) -> int:
    return int(field.split()[0]) * 1024
