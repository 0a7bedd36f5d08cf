"""The trace of a drill: what its processes said and what was done to them, in the order it was seen."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from faultline.errors import FaultlineError

DRILL = "drill"
"""The drill's own name among the processes."""

NOT_FACTS = ("at", "level", "logger", "event", "message", "process")


class DrillStuck(FaultlineError):
    """Something the drill waited for did not happen in time.

    Nothing is lost: the verdict is still read from the database. The trace shows how far it came.
    """


@dataclass(frozen=True, slots=True)
class TraceSign:
    """One thing that was seen: who, what, and its facts."""

    who: str
    what: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    level: str = "info"
    is_event: bool = True

    @property
    def json(self) -> str:
        """The sign as one line of JSON, as the process itself would have written it."""
        kind = "event" if self.is_event else "message"
        line = {"at": self.at, "level": self.level, "process": self.who, kind: self.what, **self.facts}
        return json.dumps(line, default=str)

    @property
    def seconds(self) -> float:
        """Its moment, for telling how far apart two signs are."""
        return datetime.fromisoformat(self.at).timestamp()


def read(who: str, line: str) -> TraceSign:
    """What a process wrote on its standard error: a line of JSON, or whatever an accident makes it say."""
    try:
        said = json.loads(line)
        facts = {name: value for name, value in said.items() if name not in NOT_FACTS}
        what = said.get("event") or said.get("message") or ""
        return TraceSign(who, what, facts, said["at"], said.get("level", "info"), "event" in said)
    except (ValueError, KeyError, AttributeError):
        return TraceSign(who, line.rstrip(), level="error", is_event=False)


class Trace:
    """Every sign so far, and a way to wait for the next, without polls or sleeps."""

    def __init__(self, heard: Callable[[TraceSign], None] | None = None) -> None:
        self.signs: list[TraceSign] = []
        self._heard = heard
        self._news = threading.Condition()

    def listen(self, heard: Callable[[TraceSign], None] | None) -> None:
        """Pass each sign from now on to a listener as well, or to none any more."""
        with self._news:
            self._heard = heard

    def tell(self, sign: TraceSign) -> None:
        """Add a sign and wake the threads that wait for it."""
        with self._news:
            self.signs.append(sign)
            if self._heard is not None:
                self._heard(sign)
            self._news.notify_all()

    def wait_for(self, match: Callable[[TraceSign], bool], within_seconds: float, what: str) -> TraceSign:
        """The first sign that matches, seen before or still to come.

        DrillStuck when it does not come in time, or when a worker ends unexpectedly.
        """
        give_up_at = time.monotonic() + within_seconds
        looked_at = 0
        with self._news:
            while True:
                for sign in self.signs[looked_at:]:
                    if match(sign):
                        return sign
                    self._check_alive(sign, what)
                looked_at = len(self.signs)
                if not self._news.wait(give_up_at - time.monotonic()) and len(self.signs) == looked_at:
                    raise DrillStuck(f"waited {within_seconds:.0f} s for this, and it did not happen: {what}")

    def _check_alive(self, sign: TraceSign, what: str) -> None:
        if sign.what == "exited" and sign.facts["code"] > 0:
            said = [one.what for one in self.signs if one.who == sign.who and not one.is_event]
            last = said[-1] if said else "it said nothing"
            raise DrillStuck(
                f"worker {sign.who} ended with code {sign.facts['code']} ({last}) before this: {what}"
            )

    def wait_for_event(self, who: str, what: str, within_seconds: float = 30.0) -> TraceSign:
        """The first event of that name from that process."""
        return self.wait_for(
            lambda sign: sign.who == who and sign.what == what, within_seconds, f"{what} of {who}"
        )
