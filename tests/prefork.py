"""Processes of tests, forked from one that has imported what they need.

Importing the package and its driver costs 0.2 s of CPU, which is most of what a short process costs. Such a
process is a child of ours like any that is started, with streams, an environment and a group of its own.
Workers in processes of their own are started as users start them, and so are their pacemakers.
"""

import atexit
import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
IMPORTED: Final = (
    "faultline.worker.heartbeat.pacemaker", "faultline.worker.processes.child_main",
    "faultline.runtime.run_worker", "faultline.app",
)  # fmt: skip

MESSAGE_BYTES_MAX: Final = 1 << 20
FDS_MAX: Final = 4
PR_SET_CHILD_SUBREAPER: Final = 36
LOOK_EVERY: Final = 0.0005

_turn = threading.Lock()
_line_of: tuple[int, socket.socket] | None = None


def start(
    call: str, *words: object, stdin: int, stdout: int, stderr: int = 2, pass_fd: int | None = None,
    environment: dict[str, str] | None = None, imports: Sequence[str] = (),
) -> "subprocess.Popen[bytes]":  # fmt: skip
    """Call `module:function` in a process of its own; `{fd}` among the words is its number of `pass_fd`.

    What it imports besides is kept for the processes after it.
    """
    said = {
        "call": call, "words": words, "environment": environment or dict(os.environ), "in": str(Path.cwd()),
        "parent": os.getpid(), "imports": imports,
    }  # fmt: skip
    fds = [stdin, stdout, stderr, *([] if pass_fd is None else [pass_fd])]
    with _turn:
        pid = _forked(json.dumps(said).encode(), fds)
    return _as_popen(pid, [call, *map(str, words)])


def _forked(said: bytes, fds: Sequence[int]) -> int:
    """The id of the new process. It becomes our child, since for this moment we adopt orphans."""
    line = _line()
    _adopt_orphans(True)
    try:
        socket.send_fds(line, [said], fds)
        told = line.recv(32)
    finally:
        _adopt_orphans(False)
    if not told:
        raise OSError("the process that others are forked from is gone")
    return int(told)


def _line() -> socket.socket:
    global _line_of
    if _line_of is None or _line_of[0] != os.getpid():  # a fork of ours has none of its own
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.prefork", str(theirs.fileno())], cwd=ROOT,
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, process_group=0,
            )  # fmt: skip
        atexit.register(_end, os.getpid(), ours, process)
        _line_of = os.getpid(), ours
    return _line_of[1]


def _end(owner: int, line: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    if owner == os.getpid():
        line.close()
        process.wait()


def _adopt_orphans(adopt: bool) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(adopt))


def _as_popen(pid: int, words: list[str]) -> "subprocess.Popen[bytes]":
    """What `subprocess` gives for a child that it has started, for one that it has not."""
    process: subprocess.Popen[bytes] = subprocess.Popen.__new__(subprocess.Popen)
    process.__dict__.update(
        args=words, pid=pid, returncode=None, stdin=None, stdout=None, stderr=None, text_mode=False,
        _child_created=True, _waitpid_lock=threading.Lock(), _input=None, _communication_started=False,
        encoding=None, errors=None, pipesize=-1, _sigint_wait_secs=0.25, _closed_child_pipe_fds=True,
    )  # fmt: skip
    return process


def _serve(line: socket.socket) -> None:
    """Fork a process for each message, until the process of the tests is gone."""
    for name in IMPORTED:
        import_module(name)
    while True:
        message, fds, _, _ = socket.recv_fds(line, MESSAGE_BYTES_MAX, FDS_MAX)
        if not message:
            return
        said = json.loads(message)
        for name in said["imports"]:
            import_module(name)
        gc.freeze()
        between = os.fork()
        if not between:
            if os.fork():
                os._exit(0)
            _run(line, said, fds)
        os.waitpid(between, 0)
        for fd in fds:
            os.close(fd)


def _run(line: socket.socket, said: dict[str, Any], fds: list[int]) -> None:
    code = 1
    try:
        _become(line, said, fds)
        module, _, function = said["call"].partition(":")
        words = [word.format(fd=fds[-1]) if isinstance(word, str) else word for word in said["words"]]
        code = getattr(import_module(module), function)(*words) or 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else bool(left.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _become(line: socket.socket, said: dict[str, Any], fds: list[int]) -> None:
    """What a started process finds: its parent, its group, its streams, its environment and its place."""
    while os.getppid() != said["parent"]:
        time.sleep(LOOK_EVERY)
    os.setpgid(0, 0)
    for number, fd in enumerate(fds[:3]):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(said["environment"])
    os.chdir(said["in"])
    line.send(str(os.getpid()).encode())
    line.close()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _serve(socket.socket(fileno=int(sys.argv[1])))
