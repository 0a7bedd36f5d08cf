"""What a run is asked for."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import places

THROUGHPUT = ("single", "drain1", "drain2", "latency")
FAILURES = ("crash", "zombie", "zombie_mid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The phases, the systems, and how much of each."""

    systems: tuple[str, ...] = ()
    phases: tuple[str, ...] = THROUGHPUT
    repeats: int = 3
    jobs: int = 20_000
    single_cap: float = 5
    """Seconds after which enqueuing one by one stops."""
    bulk_cap: float = 12
    """Seconds after which bulk enqueuing stops; meant for libraries without a bulk API."""
    drain_cap: float = 25
    """Seconds after its first handler at which a drain is cut."""
    latency_s: float = 10
    latency_ms: float = 20
    warm: float = 2.5
    fail_warm: float = 40
    crash_wait: float = 120
    out: Path = places.RESULTS / "peers.json"
    page: Path | None = None

    def told(self) -> dict[str, Any]:
        """For the JSON: everything but where it was written."""
        names = [name for name in self.__slots__ if name not in ("out", "page")]
        return {name: getattr(self, name) for name in names}


def read(words: list[str] | None = None) -> Options:
    """Options from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    default = Options()
    parser.add_argument(
        "--systems", type=listed, default=(), help="file stems in systems/, a comma between; all"
    )
    parser.add_argument(
        "--phases", type=listed, default=None,
        help=f"of {','.join(THROUGHPUT + FAILURES)}; default {','.join(THROUGHPUT)}",
    )  # fmt: skip
    parser.add_argument("--failures", action="store_true", help=f"the phases {','.join(FAILURES)}")
    for name in ("repeats", "jobs"):
        parser.add_argument(f"--{name}", type=int, default=getattr(default, name))
    for name in (
        "single_cap",
        "bulk_cap",
        "drain_cap",
        "latency_s",
        "latency_ms",
        "warm",
        "fail_warm",
        "crash_wait",
    ):
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=getattr(default, name))
    parser.add_argument("--out", type=Path, help="the JSON; default benchmarks/results/peers[-failures].json")
    parser.add_argument("--page", type=Path, help="a folder for page and plots, when not docs/")
    return _options(vars(parser.parse_args(words)))


def _options(told: dict[str, Any]) -> Options:
    failures = told.pop("failures")
    phases = told["phases"] or (FAILURES if failures else THROUGHPUT)
    only_failures = set(phases) <= set(FAILURES)
    out = told["out"] or places.RESULTS / ("peers-failures.json" if only_failures else "peers.json")
    return Options(**{**told, "phases": phases, "out": out.resolve()})


def listed(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)
