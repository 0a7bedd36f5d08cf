"""Monotonic clocks to run the suite under, each made by a time namespace of Linux."""

import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

YOUNG_SECONDS: Final = 60
"""A machine that was started a minute ago: earlier moments are negative."""

OLD_SECONDS: Final = 2**32
"""The largest power of two that the kernel lets a clock be set to (it refuses 2**33 and 2**40 seconds).

That is 2**42 in milliseconds and more than 32 bits hold in seconds; a float still tells microseconds apart.
"""


OFFSETS: Final = Path("/proc/self/timens_offsets")


def _offset_here() -> int:
    """The distance of our clock from the machine's: an offset counts from the machine's, also when nested."""
    told = dict(line.split()[:2] for line in OFFSETS.read_text().splitlines())
    return int(told["monotonic"])


@dataclass(frozen=True)
class Clock:
    """A name for people, and the moment a run begins at; none for the machine's own clock."""

    name: str
    begins_at: int | None = None

    def prefix(self) -> list[str]:
        """What to put before a command so that its monotonic clock begins there."""
        if self.begins_at is None:
            return []
        offset = str(self.begins_at - int(time.monotonic()) + _offset_here())
        return ["unshare", "--time", "--fork", "--kill-child", "--monotonic", offset, "--boottime", offset]

    def why_not(self) -> str:
        """Why a command cannot run under this clock here; nothing when it can."""
        if self.begins_at is None:
            return ""
        if shutil.which("unshare") is None:
            return "there is no unshare (util-linux)"
        tried = subprocess.run([*self.prefix(), "true"], capture_output=True, text=True, check=False)
        return tried.stderr.strip() if tried.returncode else ""


CLOCKS: Final = (
    Clock("plain"), Clock("near 60 s", YOUNG_SECONDS), Clock("near 2^32 s", OLD_SECONDS),
)  # fmt: skip
