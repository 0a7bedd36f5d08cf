"""How an attempt ended: Done, Failed, Crashed, Snooze, Cancel, Dead, Released, or Unserved.

A handler that returns a plain value is Done, one that raises is Failed. `Snooze`, `Cancel` and
`Dead` are outcomes that a handler chooses itself, returned or raised, whichever reads better there.
`Released` is the worker's own: the job goes back with its attempt uncounted. So are `Crashed`, for an
attempt that took its process with it, and `Unserved`, for a task without a handler here.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, final

from faultline.errors import OutOfBounds


@final
@dataclass(frozen=True, slots=True)
class Done:
    """The handler finished; `result` is what it returned.

    >>> Done({"sent": True}).result
    {'sent': True}
    """

    result: Any = None


@final
@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised; `delay` is the wait before the next attempt.

    Without a delay the job waits for a second.

    >>> Failed("ValueError: no such order", delay=timedelta(seconds=2)).delay.total_seconds()
    2.0
    """

    error: str
    delay: timedelta | None = None


@final
@dataclass(frozen=True, slots=True)
class Crashed:
    """The handler killed its process, or used up its memory; `signature` says how, in a word or two.

    Only a crash `alone`, in a process in which nothing else has run, counts towards `max_crashes`.

    >>> Crashed("HandlerDied: the process was killed by SIGSEGV", "SIGSEGV", alone=True).max_crashes
    3
    """

    error: str
    signature: str
    delay: timedelta | None = None
    alone: bool = False
    max_crashes: int | None = 3


@final
@dataclass(frozen=True, slots=True)
class Released:
    """The worker gives the job back unfinished, and its attempt with it.

    >>> Released("the worker is stopping").reason
    'the worker is stopping'
    """

    reason: str = ""
    delay: timedelta = timedelta(0)


@final
@dataclass(frozen=True, slots=True)
class Unserved:
    """This worker has no handler for the task: the job is left for a worker that has one, for a day at most.

    >>> Unserved(timedelta(seconds=15)).delay.total_seconds()
    15.0
    """

    delay: timedelta


UNKNOWN_TASK: Final = "unknown_task"
"""The reason of a `Released` message that stands for `Unserved` in the protocol of workers."""


class _Said(Exception):
    """An outcome that a handler may return or raise.

    Frozen like the other outcomes, but with code of its own: a frozen dataclass would also refuse the
    `__traceback__` that `contextlib` sets on an exception it re-raises.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            raise AttributeError(f"{type(self).__name__} cannot be changed; make another")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; make another")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.args == self.args

    def __hash__(self) -> int:
        return hash((type(self), self.args))


@final
class Snooze(_Said):
    """Run this job again after `delay`, without counting the attempt.

    >>> def poll(ready: bool) -> Snooze | None:
    ...     return None if ready else Snooze(timedelta(minutes=5), "the export is not ready")
    >>> poll(False)
    Snooze(delay=datetime.timedelta(seconds=300), reason='the export is not ready')
    """

    __match_args__ = ("delay", "reason")
    args: tuple[timedelta, str]

    def __init__(self, delay: timedelta, reason: str = "") -> None:
        if not isinstance(delay, timedelta):
            raise TypeError(
                f"Snooze takes a timedelta, such as timedelta(minutes=5), not {type(delay).__name__}"
            )
        if delay < timedelta(0):
            raise OutOfBounds(f"Snooze cannot go back in time: delay is {delay}, use zero or more")
        super().__init__(delay, reason)

    @property
    def delay(self) -> timedelta:
        return self.args[0]

    @property
    def reason(self) -> str:
        return self.args[1]

    def __repr__(self) -> str:
        return f"Snooze(delay={self.delay!r}, reason={self.reason!r})"

    def __str__(self) -> str:
        return self.reason or f"snoozed for {self.delay}"


@final
class Cancel(_Said):
    """End this job for good, unfinished and without an error.

    >>> try:
    ...     raise Cancel("the order was withdrawn")
    ... except Cancel as word:
    ...     print(word.reason)
    the order was withdrawn
    """

    __match_args__ = ("reason",)
    args: tuple[str]

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)

    @property
    def reason(self) -> str:
        return self.args[0]


@final
class Dead(_Said):
    """Give up now, whatever attempts are left; the job is kept for a person to look at.

    >>> Dead("the account is closed").reason, Dead().reason
    ('the account is closed', 'Dead, and no reason was given')
    """

    __match_args__ = ("reason", "error")
    args: tuple[str] | tuple[str, str]

    def __init__(self, reason: str = "", error: str | None = None) -> None:
        """`error` is kept with the job in place of the reason: a traceback, say."""
        said = reason or "Dead, and no reason was given"
        super().__init__(*((said,) if error is None else (said, error)))

    @property
    def reason(self) -> str:
        return self.args[0]

    @property
    def error(self) -> str | None:
        return self.args[1] if len(self.args) == 2 else None

    def __str__(self) -> str:
        return self.reason


Outcome = Done | Failed | Crashed | Snooze | Cancel | Dead | Released | Unserved

HANDLER_OUTCOMES: Final = (Snooze, Cancel, Dead)
"""Those that a handler returns or raises by name."""
