"""A Ctrl-C that Python had to drop is raised again.

Python raises KeyboardInterrupt at the present line of the main thread. In a finaliser (`__del__`), or in the
callback of a weak reference or of C code, no caller can receive it: Python prints "Exception ignored in"
and goes on, and the command would run to its end as if no key had been pressed.
"""

import atexit
import signal
import sys
import threading
from types import FrameType
from typing import Final

AGAIN_SECONDS: Final = 0.01
"""By then the main thread has most likely left the code that swallowed it; if not, it is raised again."""


def keep_interrupts() -> None:
    """From now on raise a dropped Ctrl-C again. Once a process, by its main thread."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return
    atexit.register(_disarm)  # before any other, so that it is called last
    before = sys.unraisablehook

    def dropped(what: "sys.UnraisableHookArgs") -> None:
        if issubclass(what.exc_type, KeyboardInterrupt) and not sys.is_finalizing():
            signal.signal(signal.SIGALRM, _again)
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        else:
            before(what)

    sys.unraisablehook = dropped


def _again(number: int, frame: FrameType | None) -> None:
    # Not the exception itself: an event loop may handle SIGINT by now.
    signal.raise_signal(signal.SIGINT)


def _disarm() -> None:
    """The command has ended: an alarm without a handler would kill the process."""
    signal.setitimer(signal.ITIMER_REAL, 0)
