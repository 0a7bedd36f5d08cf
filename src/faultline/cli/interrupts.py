"""A Ctrl-C that Python had to drop is raised again.

Python raises KeyboardInterrupt wherever the main thread happens to be. In a finaliser (`__del__`), in the
callback of a weak reference or of C code there is nobody to raise it to: Python prints "Exception ignored in"
and goes on, and the command would run to its end as if no key had been pressed.
"""

import atexit
import signal
import sys
import threading
from types import FrameType
from typing import Final

AGAIN_SECONDS: Final = 0.01
"""By then the main thread is most likely out of what swallowed it; if not, it is dropped and raised again."""


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
    # Not the exception itself: by now SIGINT may be answered by an event loop.
    signal.raise_signal(signal.SIGINT)


def _disarm() -> None:
    """The command has come to its end: an alarm that nobody answers any more would kill the process."""
    signal.setitimer(signal.ITIMER_REAL, 0)
