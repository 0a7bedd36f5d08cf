"""Every figure by its key: its heading, how it is printed, and how an axis calls it."""

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Figure:
    """How people see a figure."""

    heading: str
    form: str = ",.0f"
    axis: str = ""

    def text(self, value: Any) -> str:
        if value is None:
            return "-"
        return value if isinstance(value, str) else format(value, self.form)


FIGURES: Final[dict[str, Figure]] = {
    "case": Figure("case", "s"),
    "jobs": Figure("jobs"),
    "seconds": Figure("s", ".2f", "seconds"),
    "workers": Figure("workers", axis="worker processes"),
    "keep": Figure("keep", "s"),
    "way": Figure("way", "s"),
    "of_direct": Figure("of direct", ".0%", "share of the direct worker's rate"),
    "of_direct_median": Figure("of direct, medians", ".0%"),
    "jobs_per_second": Figure("jobs/s", axis="jobs a second"),
    "enqueued_per_second": Figure("enqueued/s", axis="jobs enqueued a second"),
    "wal_bytes_per_job": Figure("WAL B/job", axis="bytes of WAL a job"),
    "commits_per_job": Figure("commits/job", ".3f"),
    "client_cpu_us_per_job": Figure("client us/job", ".1f", "CPU microseconds a job, worker"),
    "server_cpu_us_per_job": Figure("server us/job", ".1f", "CPU microseconds a job, server"),
    "session_cpu_us_per_job": Figure(
        "sessions us/job", ".1f", "CPU microseconds a job, sessions of the server"
    ),
    "hot_share": Figure("HOT", ".1%"),
    "rows_killed_per_job": Figure("rows killed/job", ".2f"),
    "dead_rows": Figure("dead rows", axis="dead rows"),
    "worker_mb": Figure("worker MB", axis="megabytes"),
    "pacemaker_mb": Figure("pacemaker MB"),
    "peak_mb": Figure("peak MB", ".1f"),
    "grew_mb": Figure("grew MB", "+.1f"),
    "producer_mb": Figure("producer MB", axis="megabytes"),
    "active_mb": Figure("active MB", axis="megabytes"),
    "ledger_mb": Figure("ledger MB", axis="megabytes"),
    "rate": Figure("offered/s", axis="jobs offered a second"),
    "phase": Figure("phase", "s"),
    "depth": Figure("waiting", axis="jobs waiting"),
    "scheduled": Figure("scheduled", axis="jobs scheduled for later"),
    "queues": Figure("queues", axis="queues"),
    "payload_bytes": Figure("args B", axis="bytes of args a job"),
    "open_ms": Figure("open ms", axis="milliseconds a producer's transaction stays open"),
    "kind": Figure("handler", "s"),
    "handler_ms": Figure("takes ms", axis="milliseconds a handler takes"),
    "concurrency": Figure("at once"),
    "of_ideal": Figure("of ideal", ".0%", "share of the ideal rate"),
    "connections": Figure("connections", axis="connections"),
    "server_mb": Figure("server MB", axis="megabytes"),
    "batch": Figure("a call", axis="jobs a call"),
    "calls_per_second": Figure("calls/s", axis="calls a second"),
    "claim_ms": Figure("claim ms", ".2f", "milliseconds a claim, in the server"),
    "claim_ms_p50": Figure("claim p50 ms", ".2f", "milliseconds a claim"),
    "claim_ms_p99": Figure("claim p99 ms", ".2f", "milliseconds a claim, p99"),
    "pickup_ms_p50": Figure("pickup p50 ms", ".2f", "milliseconds from enqueueing to the handler's start"),
    "pickup_ms_p95": Figure("pickup p95 ms", ".2f"),
    "pickup_ms_p99": Figure("pickup p99 ms", ".2f", "milliseconds to the handler's start, p99"),
    "pickup_ms_max": Figure("pickup max ms", ".1f"),
    "after_commit_ms_p50": Figure("after commit p50 ms", ".2f"),
    "after_commit_ms_p99": Figure("after commit p99 ms", ".2f"),
    "after_commit_ms_max": Figure("after commit max ms", ".1f"),
    "call_ms_p50": Figure("call p50 ms", ".2f"),
    "call_ms_p99": Figure("call p99 ms", ".2f"),
    "end_ms_p50": Figure("end p50 ms", ".2f"),
    "end_ms_p99": Figure("end p99 ms", ".2f"),
    "late_ms_p50": Figure("late p50 ms", ".1f", "milliseconds after run_at"),
    "late_ms_p99": Figure("late p99 ms", ".1f", "milliseconds after run_at, p99"),
    "late_ms_max": Figure("late max ms", ".1f"),
    "kills": Figure("kills"),
    "recovery_seconds_p50": Figure("recovery p50 s", ".1f", "seconds from the kill to the next attempt"),
    "recovery_seconds_max": Figure("recovery max s", ".1f"),
    "lost": Figure("lost"),
    "succeeded": Figure("succeeded"),
    "succeeded_twice": Figure("committed twice"),
    "run_again": Figure("run again"),
    "asked": Figure("asked for"),
    "server_cpu_percent": Figure("server % of a core", ".2f", "server CPU, per cent of a core"),
    "client_cpu_percent": Figure("client % of a core", ".2f"),
}


def figure(key: str) -> Figure:
    """A figure that is not listed is a plain number under its own name."""
    return FIGURES.get(key, Figure(key.replace("_", " "), ",.2f", key.replace("_", " ")))
