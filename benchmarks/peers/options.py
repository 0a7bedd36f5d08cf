"""What a run is asked for."""

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.peers import places

THROUGHPUT = ("single", "drain1", "drain2", "latency")
STEADY = ("sustained", "offered")
FAILURES = ("crash", "zombie", "zombie_mid")
ONE_ROW = ("one_row",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The phases, the systems, and how much of each."""

    systems: tuple[str, ...] = ()
    phases: tuple[str, ...] = THROUGHPUT
    repeats: int = 3
    jobs: int = 20_000
    single_cap: float = 5.0
    """Seconds after which enqueuing one by one stops."""
    bulk_cap: float = 12.0
    """Seconds after which bulk enqueuing stops; meant for libraries without a bulk API."""
    drain_cap: float = 25.0
    """Seconds after its first handler at which a drain is cut."""
    short_s: float = 2.0
    turns: int = 3
    """How often a drain that takes less than those seconds is measured in each repeat: the middle counts."""
    latency_s: float = 10.0
    latency_ms: float = 20.0
    depth: int = 2_000
    """How many jobs the sustained phase keeps waiting."""
    sustained_s: float = 9.0
    rate: int = 1_000
    """Jobs a second that the offered phase enqueues."""
    offered_s: float = 6.0
    rows: int = 10_000
    """Jobs of the phase whose handlers insert a row."""
    rows_cap: float = 20.0
    """Seconds after its first handler at which that phase is cut."""
    warm: float = 2.5
    fail_warm: float = 40.0
    crash_wait: float = 120.0
    out: Path = places.RESULTS / "peers.json"
    page: Path | None = None

    def told(self) -> dict[str, Any]:
        """For the JSON: everything but where it was written."""
        names = [name for name in self.__slots__ if name not in ("out", "page")]
        return {name: getattr(self, name) for name in names}


def read(words: list[str] | None = None) -> Options:
    """Options from the command line.

    >>> read(["--phases", "single", "--jobs", "500"]).jobs
    500
    """
    every = THROUGHPUT + STEADY + ONE_ROW + FAILURES
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "--systems", type=listed, default=(), help="names of files in systems/, by comma; all"
    )
    parser.add_argument("--phases", type=listed, help=f"of {','.join(every)}; {','.join(THROUGHPUT)}")
    parser.add_argument("--steady", action="store_true", help=f"the phases {','.join(STEADY)} as well")
    parser.add_argument("--failures", action="store_true", help=f"the phases {','.join(FAILURES)} instead")
    parser.add_argument("--one-row", action="store_true", help="the phase one_row instead")
    parser.add_argument(
        "--out", type=Path, help="the JSON; benchmarks/results/peers[-failures|-one-row].json"
    )
    parser.add_argument("--page", type=Path, help="a folder for page and plots; docs/")
    for field in fields(Options):
        if isinstance(field.default, int | float):
            flag = f"--{field.name.replace('_', '-')}"
            parser.add_argument(flag, type=type(field.default), default=field.default)
    told = vars(parser.parse_args(words))
    if unknown := set(told["phases"] or ()) - set(every):
        parser.error(f"there is no phase {', '.join(sorted(unknown))}")
    if unknown := set(told["systems"]) - set(systems()):
        parser.error(f"there is no system {', '.join(sorted(unknown))}")
    return _options(told)


def _options(told: dict[str, Any]) -> Options:
    failures, steady, one_row = told.pop("failures"), told.pop("steady"), told.pop("one_row")
    phases = told["phases"] or (FAILURES if failures else ONE_ROW if one_row else THROUGHPUT)
    phases += STEADY if steady else ()
    out = told["out"] or places.RESULTS / _file_of(set(phases))
    return Options(**{**told, "phases": phases, "out": out.resolve()})


def _file_of(phases: set[str]) -> str:
    """The page is made of three files: each of them is measured by itself."""
    if phases <= set(FAILURES):
        return "peers-failures.json"
    return "peers-one-row.json" if phases <= set(ONE_ROW) else "peers.json"


def listed(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def systems() -> dict[str, Path]:
    """Every adapter there is, by its file's name; an underscore in front marks what they share."""
    files = sorted(path for path in places.SYSTEMS.glob("[a-z]*") if path.suffix in (".py", ".mjs"))
    return {path.stem.rstrip("_"): path for path in files}
