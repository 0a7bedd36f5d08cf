"""Listens to the events of this process, and counts."""

import platform
import threading
from collections.abc import Callable
from typing import Any, Final

import faultline
from faultline.metrics.series import MetricSeries
from faultline.telemetry import listen
from faultline.watchdog.chores import CHORES

ANSWERS: Final = ("succeeded", "failed", "dead", "running", "gone")

FROM_THE_START: Final = (
    ("leases_renewed", ()), ("leases_taken_over", ()), ("pacemaker_restarts", ()), ("process_restarts", ()),
    ("watchdog_rounds", ()), ("timeline_changes", ()), ("loop_blocked_seconds", ("(none)",)),
    ("schedule_failures", ()),
    *(("schedule_occurrences", (decision,)) for decision in ("enqueued", "made_up", "skipped")),
    *(("clock_steps", (direction,)) for direction in ("back", "forward")),
    *(("commits_resolved", (answer,)) for answer in ANSWERS),
    *(("watchdog_chores_failed", (chore,)) for chore in CHORES),
)  # fmt: skip
"""Series with labels that are known beforehand: present at zero, since a rate needs a start."""


class EventCounter:
    """Turns events into figures, in the thread of each event.

    >>> counting = EventCounter()
    >>> stop = counting.start()
    >>> from faultline.telemetry import emit
    >>> emit("stale_write_blocked", queue="default", reason="token_mismatch")
    >>> counting.figures.snapshot()["stale_writes_refused"]
    {('default', 'token_mismatch'): 1.0}
    >>> stop()
    """

    def __init__(self) -> None:
        self.figures = MetricSeries()
        self.figures.set("build_info", (faultline.__version__, platform.python_version()), 1)
        for name, labels in FROM_THE_START:
            self.figures.add(name, labels, 0)
        self._kinds: dict[str, Callable[[dict[str, Any]], None]] = {
            "enqueued": self._enqueued, "jobs_claimed": self._claimed, "jobs_settled": self._settled,
            "job_crashed": self._crashed, "stale_write_blocked": self._refused,
            "lease_expired": self._expired, "job_expired": self._expired_job,
            "recovered": self._recovered, "zombie_refused": self._zombie, "commit_resolved": self._resolved,
            "worker_state": self._worker, "round_made": self._round, "watchdog_state": self._watchdog,
            "loop_still": self._still, "clock_stepped": self._stepped, "timeline_changed": self._turned,
            "chore_failed": self._chore, "schedules_fired": self._fired,
            "schedule_failed": self._schedule_failed, "process_ended": self._restarted,
            "door_served": self._door,
        }  # fmt: skip

    def start(self) -> Callable[[], None]:
        """Count from now on; returns how to stop."""
        return listen(self)

    def __call__(self, name: str, facts: dict[str, Any]) -> None:
        if count := self._kinds.get(name):
            count(facts)

    def _enqueued(self, facts: dict[str, Any]) -> None:
        self.figures.add("jobs_enqueued", (facts["queue"], facts["task"]), facts.get("jobs", 1))

    def _claimed(self, facts: dict[str, Any]) -> None:
        for queue, waits in facts["waits"].items():
            self.figures.add("leases_acquired", (queue,), len(waits))
            self.figures.observe("job_pickup_seconds", (queue,), waits)
        for job, times in facts["retried"].items():
            self.figures.add("retries", job, times)
        self.figures.observe("claim_duration_seconds", (), [facts["seconds"]])

    def _settled(self, facts: dict[str, Any]) -> None:
        for kind, times in facts["counts"].items():
            self.figures.add("jobs_settled", kind, times)
        for job, seconds in facts["took"].items():
            self.figures.observe("job_duration_seconds", job, seconds)

    def _crashed(self, facts: dict[str, Any]) -> None:
        self.figures.add("crashes", (facts["task"], facts["signature"] or "unknown"))

    def _refused(self, facts: dict[str, Any]) -> None:
        self.figures.add("stale_writes_refused", (facts["queue"], facts["reason"]))

    def _expired(self, facts: dict[str, Any]) -> None:
        self.figures.add("leases_expired", (facts["queue"],))

    def _expired_job(self, facts: dict[str, Any]) -> None:
        self.figures.add("jobs_expired", (facts["queue"], facts["task"]))

    def _recovered(self, facts: dict[str, Any]) -> None:
        self.figures.add("leases_taken_over")
        self.figures.observe("recovery_seconds", (), [facts["seconds"]])

    def _zombie(self, facts: dict[str, Any]) -> None:
        self.figures.observe("zombie_seconds", (), [facts["seconds"]])

    def _resolved(self, facts: dict[str, Any]) -> None:
        self.figures.add("commits_resolved", (facts["answer"],))

    def _worker(self, facts: dict[str, Any]) -> None:
        put, busy, stuck = self.figures.set, facts["running"], facts["stuck"]
        for state, many in ("busy", busy), ("stuck", stuck), ("idle", max(0, facts["slots"] - busy - stuck)):
            put("worker_slots", (state,), many)
        put("worker_jobs_in_hand", (), facts["in_hand"])
        put("worker_jobs_buffered", (), facts["buffered"])
        put("worker_listening", (), facts["listening"])
        put("worker_outage_seconds", (), facts["outage_seconds"])
        put("leases_renewed", (), facts["renewed"])
        put("pacemaker_beats", ("ok",), facts["beats"] - facts["beats_in_vain"])
        put("pacemaker_beats", ("failed",), facts["beats_in_vain"])
        put("pacemaker_beat_age_seconds", (), facts["beat_age"])
        put("pacemaker_restarts", (), facts["pacemakers_replaced"])
        put("processes", (), 1)
        for pool, (size, lent) in facts["connections"].items():
            put("pool_connections", (pool, "lent"), lent)
            put("pool_connections", (pool, "idle"), size - lent)

    def _round(self, facts: dict[str, Any]) -> None:
        self.figures.add("watchdog_rounds")
        self.figures.observe("watchdog_round_seconds", (), [facts["seconds"]])

    def _watchdog(self, facts: dict[str, Any]) -> None:
        self.figures.set("watchdog_leads", (), facts["leads"])

    def _still(self, facts: dict[str, Any]) -> None:
        self.figures.add("loop_blocked_seconds", (facts["task"],), facts["seconds"])

    def _stepped(self, facts: dict[str, Any]) -> None:
        self.figures.add("clock_steps", ("back" if facts["seconds"] < 0 else "forward",))

    def _turned(self, facts: dict[str, Any]) -> None:
        self.figures.add("timeline_changes")

    def _chore(self, facts: dict[str, Any]) -> None:
        self.figures.add("watchdog_chores_failed", (facts["chore"],))

    def _fired(self, facts: dict[str, Any]) -> None:
        for decision in ("enqueued", "made_up", "skipped"):
            self.figures.add("schedule_occurrences", (decision,), facts[decision])
        self.figures.observe("schedule_lag_seconds", (), facts["lags"])

    def _schedule_failed(self, facts: dict[str, Any]) -> None:
        self.figures.add("schedule_failures")

    def _door(self, facts: dict[str, Any]) -> None:
        protocol, add = facts["door"], self.figures.add
        for answer in ("ok", "refused", "failed"):  # present at zero: a rate needs a start
            add("server_requests", (protocol, "other", answer), 0)
        add("server_refusals", (protocol, "not_authenticated"), 0)
        for (route, answer), times in facts["requests"].items():
            add("server_requests", (protocol, route, answer), times)
        for reason, times in facts["refused"].items():
            add("server_refusals", (protocol, reason), times)
        for route, seconds in facts["took"].items():
            self.figures.observe("server_request_seconds", (protocol, route), seconds)
        add("server_bytes", (protocol, "received"), facts["received"])
        add("server_bytes", (protocol, "sent"), facts["sent"])
        self.figures.set("server_connections", (protocol,), facts["connections"])
        for kind, many in facts["in_hand"].items():
            self.figures.set("server_in_hand", (protocol, kind), many)

    def _restarted(self, facts: dict[str, Any]) -> None:
        self.figures.add("process_restarts")


_one: EventCounter | None = None
_stop: Callable[[], None] = lambda: None  # noqa: E731
_holders = 0
_for_good = False
_making = threading.Lock()


def counting() -> EventCounter:
    """The counter of this process, started when it is first asked for, and never stopped.

    >>> counting() is counting()
    True
    >>> reset()
    """
    global _for_good
    with _making:
        _for_good = True
        return _the_one()


def hold() -> EventCounter:
    """The same for a while: with the end of the last hold, counting stops.

    >>> from faultline.telemetry.events import has_listeners
    >>> held = hold()
    >>> let_go()
    >>> has_listeners()
    False
    """
    global _holders
    with _making:
        _holders += 1
        return _the_one()


def let_go() -> None:
    """End a hold; the last one drops the figures."""
    global _holders
    with _making:
        _holders -= 1
        if not _holders and not _for_good:
            _forget()


def reset() -> None:
    """Stop counting and drop the figures; for tests."""
    global _for_good
    with _making:
        _for_good = False
        _forget()


def _the_one() -> EventCounter:
    global _one, _stop
    if _one is None:
        _one = EventCounter()
        _stop = _one.start()
    return _one


def _forget() -> None:
    global _one
    if _one is not None:
        _stop()
    _one = None
