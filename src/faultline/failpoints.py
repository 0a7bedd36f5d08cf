"""Named places where a drill may stop, kill or break this process.

`FAULTLINE_FAILPOINTS="commit.sending=freeze,claimed=kill*"` arms them. Each fires once, or every
time when a star follows. Unarmed, `reach` costs one test of an empty dict.

`FAULTLINE_FAILPOINTS_ONCE` names a folder: each point that fires leaves a file there, with the number and the
command of its process, and fires in no other process that was given the same folder. So a drill learns where
its fault struck, and that it struck once.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, cast, get_args

from faultline.errors import ConfigError

Action = Literal["kill", "freeze", "exit", "raise"]

NAMES: Final = (
    # the client
    "enqueue.sending",
    "enqueue.sent",
    # the claimer, and the executor
    "claim.sending",
    "claimed",
    "started",
    # job.complete: its block has begun, its block has ended, its last words, its commit
    "effect.before",
    "effect.after",
    "commit.sending",
    "commit.sent",
    # the settler: a batch, its answer; one by one; what is given back
    "settle.sending",
    "acked",
    "settle_one.sending",
    "settled",
    "release.sending",
    "release.sent",
    # the pacemaker, a process of its own
    "beat.sending",
    "beat.sent",
    # a child, a process of its own
    "child.begun",
    "child.ended",
    # the watchdog: the round is ours, expired leases are taken back, due jobs are lined up
    "round.won",
    "round.reaped",
    "round.promoted",
)

EXIT_CODE: Final = 86
"""The exit code of `exit`; unlike 0, 1 and 2 it cannot be mistaken for another end."""

companions: list[int] = []
"""Processes that `freeze` stops together with this one: the pacemaker, which would go on beating."""

worker: int | None = None
"""In a child process, its worker: except at the child's own points, a fault stops both.

A worker whose handler reaches its commit is killed there, in whichever process the handler runs.
"""

_armed: dict[str, tuple[Action | Callable[[], None], bool]] = {}
_brought: dict[str, Callable[[], None]] = {}
_once: Path | None = None


def are_armed() -> bool:
    """Whether any point is armed: then the ordinary code runs, without shortcuts past the points."""
    return bool(_armed)


def failpoint(name: str) -> None:
    """Say that this place was reached; does nothing unless a drill armed it.

    >>> failpoint("commit.sending")
    """
    if _armed:
        _fire(name)


def arm(text: str) -> None:
    """Arm the fail points named in `text`, and disarm all others.

    >>> arm("started=raise")
    >>> failpoint("started")
    Traceback (most recent call last):
    RuntimeError: fail point started
    >>> arm("")
    """
    wanted = dict(_read(part.strip()) for part in text.split(",") if part.strip())
    _armed.clear()
    _armed.update({name: (act, True) for name, act in _brought.items()})
    _armed.update(wanted)


def bring(name: str, act: Callable[[], None]) -> None:
    """Call a function of the drill whenever this place is reached, whatever else is armed.

    >>> bring("started", lambda: print("here"))
    >>> failpoint("started")
    here
    >>> _ = _brought.pop("started"), arm("")
    """
    if name not in NAMES:
        raise ConfigError(f"there is no fail point {name!r}; choose from {', '.join(NAMES)}")
    _brought[name] = act
    _armed[name] = (act, True)


def arm_from_environment(environment: Mapping[str, str] = os.environ) -> None:
    """Arm what FAULTLINE_FAILPOINTS names; a worker calls this once as it starts, and so do its processes."""
    global _once
    folder = environment.get("FAULTLINE_FAILPOINTS_ONCE")
    _once = Path(folder) if folder else None
    arm(environment.get("FAULTLINE_FAILPOINTS", ""))


def _read(part: str) -> tuple[str, tuple[Action, bool]]:
    name, _, action = part.partition("=")
    always = action.endswith("*")
    action = action.removesuffix("*")
    if name not in NAMES:
        raise ConfigError(
            f"FAULTLINE_FAILPOINTS names the unknown fail point {name!r}; choose from {', '.join(NAMES)}"
        )
    if action not in get_args(Action):
        raise ConfigError(
            f"FAULTLINE_FAILPOINTS asks {name} for {action!r}; choose from {', '.join(get_args(Action))}"
        )
    return name, (cast(Action, action), always)


def _fire(name: str) -> None:
    armed = _armed.get(name)
    if armed is None:
        return
    action, always = armed
    if not always:
        _armed.pop(name, None)
    if _once is not None and not _is_first(_once / name):
        return
    match action:
        case "kill":
            _send_to_worker(name, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        case "freeze":
            _send_to_worker(name, signal.SIGSTOP)
            freeze()
        case "exit":
            os._exit(EXIT_CODE)
        case "raise":
            raise RuntimeError(f"fail point {name}")
        case brought:
            brought()


def _send_to_worker(name: str, number: signal.Signals) -> None:
    if worker is not None and not name.startswith("child."):
        os.kill(worker, number)


def _is_first(trace: Path) -> bool:
    """Leave a trace of this process, unless another process left one before."""
    draft = trace.with_name(f".{trace.name}.{os.getpid()}")
    draft.write_text(f"{os.getpid()}\n{' '.join(sys.orig_argv)}")
    try:
        trace.hardlink_to(draft)  # whole at once, or not at all
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def freeze() -> None:
    """Stop the companions and then this process, here, until a SIGCONT."""
    for pid in companions:
        os.kill(pid, signal.SIGSTOP)
    # Addressed to this thread: another thread may take a signal to the whole process, and this one would
    # run on for a moment, far enough to send the very statement that it should hold back.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
