"""Drills over HTTP: each is a process of its own, with its progress as it comes and its verdict at the end.

The state of a run is kept by the server process that started it: another replica, or this one after a
restart, does not know it. A drill leaves nothing behind that needs to be known.
"""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import sys
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from faultline.errors import JobNotFound
from faultline.server.problems import BUSY, RequestRefused

RUNS_KEPT: Final = 20
LINES_KEPT: Final = 500
LINE_BYTES_MAX: Final = 65_536
SECONDS_MAX: Final = 600.0

State = Literal["running", "kept", "broken", "failed"]


@dataclass(slots=True)
class DrillRun:
    """One rehearsal of one fault."""

    id: str
    drill: str
    where: str
    started_at: datetime
    state: State = "running"
    ended_at: datetime | None = None
    progress: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))
    verdict: dict[str, Any] | None = None


class DrillRuns:
    """The runs of this process, the newest last."""

    def __init__(self, dsn: str, at_once_max: int) -> None:
        self._dsn = dsn
        self._at_once_max = at_once_max
        self.runs: OrderedDict[str, DrillRun] = OrderedDict()
        self._playing: dict[str, asyncio.Task[None]] = {}

    def start(self, drill: str, where: Literal["embedded", "database"]) -> DrillRun:
        """Begin a rehearsal; it goes on without readers."""
        if len(self._playing) >= self._at_once_max:
            raise RequestRefused(BUSY, "a drill is running; one at a time")
        run = DrillRun(secrets.token_hex(8), drill, where, datetime.now(UTC))
        self.runs[run.id] = run
        while len(self.runs) > RUNS_KEPT:
            self.runs.popitem(last=False)
        playing = asyncio.create_task(self._play(run))
        self._playing[run.id] = playing
        playing.add_done_callback(lambda _: self._playing.pop(run.id, None))
        return run

    def get(self, run_id: str) -> DrillRun:
        try:
            return self.runs[run_id]
        except KeyError:
            raise JobNotFound("this server process knows no such run") from None

    def stop(self) -> None:
        """End the running one; its processes end with it."""
        for playing in self._playing.values():
            playing.cancel()

    async def _play(self, run: DrillRun) -> None:
        process = None
        try:
            async with asyncio.timeout(SECONDS_MAX):
                process = await _started(run.drill, self._dsn if run.where == "database" else None)
                assert process.stdout is not None
                async for line in process.stdout:
                    _note(run, line)
                code = await process.wait()
                run.state = "kept" if code == 0 else "broken" if code == 3 and run.verdict else "failed"
        except (TimeoutError, OSError, ValueError, asyncio.CancelledError):
            run.state = "failed"
        finally:
            run.ended_at = datetime.now(UTC)
            if process is not None and process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


async def _started(drill: str, dsn: str | None) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "faultline.lab.drills.processes.drill_main",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True, limit=LINE_BYTES_MAX,
    )  # fmt: skip
    assert process.stdin is not None
    # Not on the command line, which every user of this machine can read: a DSN may hold a password.
    process.stdin.write(json.dumps({"drill": drill, "dsn": dsn}).encode())
    process.stdin.close()
    return process


def _note(run: DrillRun, line: bytes) -> None:
    with contextlib.suppress(ValueError):
        told = json.loads(line)
        if isinstance(told, dict):
            run.progress.append(told)
            if told.get("event") == "verdict":
                run.verdict = {"kept": bool(told.get("kept")), "broken": list(told.get("broken") or ())}
