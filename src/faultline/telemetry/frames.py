"""The stored frames of an error: the user's own first, then those of libraries below them."""

import asyncio
import sysconfig
import traceback
from collections.abc import Sequence
from itertools import islice, takewhile
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final

from faultline.bounds import counted

THEIRS_MAX: Final = 12
LIBRARIES_MAX: Final = 6
"""Frames shown of each kind: half of them or more where the error was raised, the rest where it began."""

WALK_MAX: Final = 5_000
"""Frames examined; only a traceback that was put together in code is longer than a recursion limit."""

_OURS: Final = str(Path(__file__).resolve().parents[1])
_STDLIB: Final = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_ASYNCIO: Final = str(Path(asyncio.__file__).parent)
_INSTALLED: Final = ("site-packages", "dist-packages")

Frame = tuple[FrameType, int]


def frames_of(trace: TracebackType | None, *, meant: bool = False) -> list[str]:
    """The frames of a traceback as text, the most recent call first.

    The user's own frames come first: readers find their line without a search among libraries. Frames of
    Faultline itself are left out, unless there are no others and the error was unexpected: then it is a
    defect of ours. Too many of a kind are cut in their middle.
    """
    walked = list(islice(traceback.walk_tb(trace), WALK_MAX))[::-1]
    return [] if meant and all(map(_is_ours, walked)) else _told(walked, "raised")


def frames_at(frame: FrameType) -> list[str]:
    """The same for the present stack of a loop, down to where the loop itself begins."""
    walked = islice(traceback.walk_stack(frame), WALK_MAX)
    return _told(list(takewhile(lambda each: not _is_the_loop(each), walked)), "called")


def _told(walked: list[Frame], how: str) -> list[str]:
    others = [frame for frame in walked if not _is_ours(frame)]
    if not others:
        return _shown(walked, LIBRARIES_MAX)
    home = _home(_file(others[-1]))
    theirs = [frame for frame in others if _is_theirs(_file(frame), home)]
    libraries = [frame for frame in others if not _is_theirs(_file(frame), home)]
    below = [f"  {how} below it, in libraries:", *_shown(libraries, LIBRARIES_MAX)]
    return _shown(theirs, THEIRS_MAX) + (below if libraries and theirs else below[1:])


def _is_the_loop(frame: Frame) -> bool:
    return _file(frame).startswith(_ASYNCIO) and frame[0].f_code.co_name in ("_run", "run")


def _is_ours(frame: Frame) -> bool:
    return _file(frame).startswith(_OURS)


def _file(frame: Frame) -> str:
    return frame[0].f_code.co_filename


def _is_theirs(file: str, home: str) -> bool:
    if file.startswith(home):
        return True
    return not file.startswith((*_STDLIB, "<frozen")) and not any(f"/{name}/" in file for name in _INSTALLED)


def _home(file: str) -> str:
    """The folder of the handler's package: the outermost frame is the handler's, also in site-packages."""
    for name in _INSTALLED:
        before, found, after = file.partition(f"/{name}/")
        if found:
            return f"{before}{found}{after.partition('/')[0]}"
    return file


def _shown(frames: Sequence[Frame], most: int) -> list[str]:
    """Each frame in two lines: where, and the line of source."""
    if len(frames) <= most:
        return _lines(frames)
    last = most // 3
    left_out = f"  ... {counted(len(frames) - most, 'frame')} left out ..."
    return [*_lines(frames[: most - last]), left_out, *_lines(frames[-last:])]


def _lines(frames: Sequence[Frame]) -> list[str]:
    return [entry.rstrip() for entry in traceback.StackSummary.extract(frames).format()]
