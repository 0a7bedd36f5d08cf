"""Pacemakers of workers inside a process of tests, forked where a user's are started (see `prefork`)."""

import os
import subprocess
import sys
from typing import Any, Final

from tests import prefork

PACEMAKER: Final = "faultline.worker.heartbeat.pacemaker"
_started: Any = None


def install() -> None:
    """Give the workers of this process such pacemakers, once it has any."""
    global _started
    module: Any = sys.modules.get("faultline.worker.heartbeat.pacemaker_process")
    if module is not None and module.start_pacemaker is not start_pacemaker and sys.platform == "linux":
        _started, module.start_pacemaker = module.start_pacemaker, start_pacemaker


def start_pacemaker(module: str, fd: int, slots: int) -> "subprocess.Popen[bytes]":
    """In the place of `pacemaker_process.start_pacemaker`."""
    if module != PACEMAKER:
        process: subprocess.Popen[bytes] = _started(module, fd, slots)
        return process
    theirs, ours = os.pipe()
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        process = prefork.start(
            "tests.warm_pacemakers:run", "{fd}", slots, stdin=theirs, stdout=nothing, pass_fd=fd
        )
    finally:
        os.close(theirs)
        os.close(nothing)
    process.stdin = os.fdopen(ours, "wb", 0)
    return process


def run(fd: str, slots: int) -> None:
    """What `python -m` of the module does."""
    from faultline.worker.heartbeat import pacemaker

    sys.argv = [PACEMAKER, fd, str(slots)]
    pacemaker.main(lambda said: pacemaker.PostgresHeartbeatSender(said["dsn"], said["lease"]))
