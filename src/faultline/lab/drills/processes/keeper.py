"""The process that outlives a killed drill, and ends what the drill left behind.

A frozen worker cannot notice that its drill is gone, and neither can its frozen pacemaker. This process
can: the kernel closes its standard input when the drill ends, however it ends. Run as a script, with the
standard library alone: it is up in a moment and stays small.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Read `hold N` and `drop N` until the end of standard input, then kill the process groups still held."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        word, group = line.split()
        (groups.add if word == "hold" else groups.discard)(int(group))
    for left in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(left, signal.SIGKILL)


if __name__ == "__main__":
    main()
