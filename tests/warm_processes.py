"""Pacemakers and child processes of workers inside a process of tests, forked where a user's are started.

See `prefork`. Workers in processes of their own start theirs as users' workers do.
"""

import os
import subprocess
import sys
from typing import Final

from tests import prefork

PACEMAKERS: Final = {
    "faultline.worker.heartbeat.pacemaker": "tests.warm_processes:run_pacemaker",
    "faultline.remote.remote_heartbeat": "tests.warm_processes:run_remote_pacemaker",
}
REPLACED: Final = {
    "faultline.worker.heartbeat.pacemaker_process": "start_pacemaker",
    "faultline.worker.processes.child_process": "start_child",
}
PYTHON: Final = sys.executable


def install() -> None:
    """Give the workers of this process such processes, once their modules are there."""
    if sys.platform != "linux":
        return
    for name, function in REPLACED.items():
        if (module := sys.modules.get(name)) is not None:
            setattr(module, function, globals()[function])


def start_pacemaker(module: str, fd: int, slots: int) -> "subprocess.Popen[bytes]":
    """In the place of `pacemaker_process.start_pacemaker`."""
    theirs, ours = os.pipe()
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        process = prefork.start(
            PACEMAKERS[module], "{fd}", slots, stdin=theirs, stdout=nothing, pass_fd=fd, imports=[module]
        )
    finally:
        os.close(theirs)
        os.close(nothing)
    process.stdin = os.fdopen(ours, "wb", 0)
    return process


def start_child(fd: int) -> "subprocess.Popen[bytes]":
    """In the place of `child_process.start_child`."""
    if sys.executable != PYTHON:
        raise FileNotFoundError(f"{sys.executable} cannot be started")  # a test says so
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        return prefork.start("tests.warm_processes:run_child", "{fd}", stdin=nothing, stdout=1, pass_fd=fd)
    finally:
        os.close(nothing)


def run_pacemaker(fd: str, slots: int) -> None:
    """What `python -m` of the module does."""
    from faultline.worker.heartbeat import pacemaker

    sys.argv = [pacemaker.__name__, fd, str(slots)]
    pacemaker.main(lambda said: pacemaker.PostgresHeartbeatSender(said["dsn"], said["lease"]))


def run_remote_pacemaker(fd: str, slots: int) -> None:
    from faultline.remote import remote_heartbeat
    from faultline.worker.heartbeat import pacemaker

    sys.argv = [remote_heartbeat.__name__, fd, str(slots)]
    pacemaker.main(remote_heartbeat.speak)


def run_child(fd: str) -> None:
    from faultline.worker.processes import child_main

    sys.argv = [child_main.__name__, fd]
    child_main.main()
