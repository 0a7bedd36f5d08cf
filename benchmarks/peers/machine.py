"""What the machine is, and how quiet it was: a figure without that is a rumour."""

import os
import platform
import resource
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.peers import places

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")


def describe() -> dict[str, Any]:
    """The machine by its kind, not by its name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = (PROC / "cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def own_cpu() -> float:
    """CPU seconds of everything we run: finished children, the cluster, redis."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    total = sum(each.ru_utime + each.ru_stime for each in used)
    roots = _service_pids()
    for pid, (parent, own, gone) in _processes().items():
        if pid in roots:
            # Redis is our child too, but one that is not waited for yet, so it is counted here alone.
            total += (own + gone) / TICKS
        elif parent in roots:
            total += own / TICKS
    return total


def _service_pids() -> set[int]:
    found = set()
    for file in (places.PGDATA / "postmaster.pid", places.REDIS_PID):
        try:
            found.add(int(file.read_text().split()[0]))
        except (OSError, ValueError, IndexError):
            continue
    return found


def _processes() -> dict[int, tuple[int, int, int]]:
    """Each process: its parent, its own clock ticks, those of its children that are gone."""
    found = {}
    for file in PROC.glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        found[int(file.parent.name)] = (
            int(fields[1]),
            int(fields[11]) + int(fields[12]),
            int(fields[13]) + int(fields[14]),
        )
    return found


def busy_cpu() -> float:
    """CPU seconds that the whole machine has worked."""
    with (PROC / "stat").open() as stat:
        ticks = [int(word) for word in stat.readline().split()[1:]]
    return (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / TICKS


def disk_us() -> float:
    """Median microseconds of an 8 kB write and fdatasync, where the data lives."""
    probe = os.open(places.HOME / "fsync-probe", os.O_RDWR | os.O_CREAT)
    times = []
    for _ in range(15):
        began = time.perf_counter()
        os.pwrite(probe, b"x" * 8192, 0)
        os.fdatasync(probe)
        times.append(time.perf_counter() - began)
    os.close(probe)
    return statistics.median(times) * 1e6


class Quietness:
    """How long the disk took before a step, and how many cores others used during it."""

    def __init__(self) -> None:
        self._disk = disk_us()
        self._own, self._busy, self._began = own_cpu(), busy_cpu(), time.time()

    def over(self) -> dict[str, float]:
        wall = time.time() - self._began
        foreign = busy_cpu() - self._busy - (own_cpu() - self._own)
        return {"disk_us": round(self._disk), "foreign_cores": round(max(0.0, foreign) / wall, 2)}
