"""Namespaces of its own for the whole lab: no address, port or process of it meets the machine's.

The lab's first process is the init of a PID namespace: when it ends, for whatever reason, the kernel ends
everything the lab started. Its network namespaces go with it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Final

INSIDE: Final = "FAULTLINE_HA_INSIDE"
UNSHARE: Final = ("unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
NAMESPACES: Final = "/run/netns"


def is_inside() -> bool:
    return INSIDE in os.environ


def enter(words: Sequence[str]) -> int:
    """Run the lab again in namespaces of its own; Ctrl-C and SIGTERM reach it there."""
    env = {**os.environ, INSIDE: str(os.getpid())}
    lab = subprocess.Popen([*UNSHARE, sys.executable, "-m", "proof.ha", *words], env=env)

    def forward(number: int, _: FrameType | None) -> None:
        for child in _children(lab.pid):  # the init; unshare itself passes nothing on
            os.kill(child, number)

    signal.signal(signal.SIGINT, lambda number, frame: None)  # the terminal has sent it to all of us
    signal.signal(signal.SIGTERM, forward)
    return lab.wait()


def way_in() -> str:
    """The words that lead from the machine into the lab."""
    return f"`nsenter -a -t $(pgrep -P $(pgrep -P {os.environ[INSIDE]} unshare))`"


def as_init(main: Callable[[], int]) -> int:
    """Run the lab in a child, and reap every orphan: servers that Patroni drops become our children."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.makedirs(NAMESPACES, exist_ok=True)  # noqa: PTH103
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", NAMESPACES], check=True)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, _interrupt)
        return main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, number))
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
        return [int(child) for child in file.read().split()]
