"""Every figure by its key: its heading, how it is printed, and how an axis calls it."""

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """How people see a figure."""

    heading: str
    form: str = ",.0f"
    axis: str = ""

    def text(self, value: Any) -> str:
        if value is None:
            return "-"
        return value if isinstance(value, str) else format(value, self.form)


FIGURES: Final[dict[str, FigureSpec]] = {
    "case": FigureSpec("case", "s"),
    "jobs": FigureSpec("jobs"),
    "seconds": FigureSpec("s", ".2f", "seconds"),
    "workers": FigureSpec("workers", axis="worker processes"),
    "keep": FigureSpec("keep", "s"),
    "way": FigureSpec("way", "s"),
    "of_direct": FigureSpec("of direct", ".0%", "share of the direct worker's rate"),
    "of_direct_median": FigureSpec("of direct, medians", ".0%"),
    "jobs_per_second": FigureSpec("jobs/s", axis="jobs a second"),
    "enqueued_per_second": FigureSpec("enqueued/s", axis="jobs enqueued a second"),
    "wal_bytes_per_job": FigureSpec("WAL B/job", axis="bytes of WAL a job"),
    "commits_per_job": FigureSpec("commits/job", ".3f"),
    "client_cpu_us_per_job": FigureSpec("client us/job", ".1f", "CPU microseconds a job, worker"),
    "server_cpu_us_per_job": FigureSpec("server us/job", ".1f", "CPU microseconds a job, server"),
    "session_cpu_us_per_job": FigureSpec(
        "sessions us/job", ".1f", "CPU microseconds a job, sessions of the server"
    ),
    "hot_share": FigureSpec("HOT", ".1%"),
    "rows_killed_per_job": FigureSpec("rows killed/job", ".2f"),
    "dead_rows": FigureSpec("dead rows", axis="dead rows"),
    "worker_mb": FigureSpec("worker MB", axis="megabytes"),
    "pacemaker_mb": FigureSpec("pacemaker MB"),
    "peak_mb": FigureSpec("peak MB", ".1f"),
    "grew_mb": FigureSpec("grew MB", "+.1f"),
    "producer_mb": FigureSpec("producer MB", axis="megabytes"),
    "active_mb": FigureSpec("active MB", axis="megabytes"),
    "ledger_mb": FigureSpec("ledger MB", axis="megabytes"),
    "rate": FigureSpec("offered/s", axis="jobs offered a second"),
    "phase": FigureSpec("phase", "s"),
    "depth": FigureSpec("waiting", axis="jobs waiting"),
    "scheduled": FigureSpec("scheduled", axis="jobs scheduled for later"),
    "queues": FigureSpec("queues", axis="queues"),
    "payload_bytes": FigureSpec("args B", axis="bytes of args a job"),
    "open_ms": FigureSpec("open ms", axis="milliseconds a producer's transaction stays open"),
    "kind": FigureSpec("handler", "s"),
    "handler_ms": FigureSpec("takes ms", axis="milliseconds a handler takes"),
    "concurrency": FigureSpec("at once"),
    "of_ideal": FigureSpec("of ideal", ".0%", "share of the ideal rate"),
    "connections": FigureSpec("connections", axis="connections"),
    "server_mb": FigureSpec("server MB", axis="megabytes"),
    "batch": FigureSpec("a call", axis="jobs a call"),
    "calls_per_second": FigureSpec("calls/s", axis="calls a second"),
    "claim_ms": FigureSpec("claim ms", ".2f", "milliseconds a claim, in the server"),
    "claim_ms_p50": FigureSpec("claim p50 ms", ".2f", "milliseconds a claim"),
    "claim_ms_p99": FigureSpec("claim p99 ms", ".2f", "milliseconds a claim, p99"),
    "pickup_ms_p50": FigureSpec(
        "pickup p50 ms", ".2f", "milliseconds from enqueueing to the handler's start"
    ),
    "pickup_ms_p95": FigureSpec("pickup p95 ms", ".2f"),
    "pickup_ms_p99": FigureSpec("pickup p99 ms", ".2f", "milliseconds to the handler's start, p99"),
    "pickup_ms_max": FigureSpec("pickup max ms", ".1f"),
    "after_commit_ms_p50": FigureSpec("after commit p50 ms", ".2f"),
    "after_commit_ms_p99": FigureSpec("after commit p99 ms", ".2f"),
    "after_commit_ms_max": FigureSpec("after commit max ms", ".1f"),
    "call_ms_p50": FigureSpec("call p50 ms", ".2f"),
    "call_ms_p99": FigureSpec("call p99 ms", ".2f"),
    "end_ms_p50": FigureSpec("end p50 ms", ".2f"),
    "end_ms_p99": FigureSpec("end p99 ms", ".2f"),
    "late_ms_p50": FigureSpec("late p50 ms", ".1f", "milliseconds after run_at"),
    "late_ms_p99": FigureSpec("late p99 ms", ".1f", "milliseconds after run_at, p99"),
    "late_ms_max": FigureSpec("late max ms", ".1f"),
    "kills": FigureSpec("kills"),
    "recovery_seconds_p50": FigureSpec("recovery p50 s", ".1f", "seconds from the kill to the next attempt"),
    "recovery_seconds_max": FigureSpec("recovery max s", ".1f"),
    "lost": FigureSpec("lost"),
    "succeeded": FigureSpec("succeeded"),
    "succeeded_twice": FigureSpec("committed twice"),
    "run_again": FigureSpec("run again"),
    "asked": FigureSpec("asked for"),
    "server_cpu_percent": FigureSpec("server % of a core", ".2f", "server CPU, per cent of a core"),
    "client_cpu_percent": FigureSpec("client % of a core", ".2f"),
}


def figure(key: str) -> FigureSpec:
    """A figure that is not listed is a plain number under its own name."""
    return FIGURES.get(key, FigureSpec(key.replace("_", " "), ",.2f", key.replace("_", " ")))
