"""Every metric there is: its name, what it counts, and its labels; the docs and the dashboard are made from this table.

No label holds a job, a worker or anything a user typed but the names of queues and tasks, and of those only so many.
"""

from dataclasses import dataclass
from typing import Final, Literal

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Buckets for the time a handler takes, and for how long something goes on."""

WAITS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    15.0,
    60.0,
    300.0,
    3600.0,
)
"""Buckets for the time a due job waits: from an idle worker's millisecond to a backlog of hours."""

OTHER: Final = "other"
"""The label's value for all values past the bound."""

VALUES_MAX: Final = {"queue": 100, "task": 200, "signature": 20, "chore": 20, "route": 60, "limit": 100}
"""The bound on distinct values of a label; the first ones keep their names."""

SERIES_MAX: Final = 500
"""The bound on the series of one metric, over all labels."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, by its name without `faultline_` and without `_total`."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    together: Literal["sum", "max"] = "sum"
    """The rule that makes one figure of the processes of one worker."""
    by: Literal["process", "database"] = "process"
    """The source: each process for itself, or the database for all, queried by one."""

    @property
    def full_name(self) -> str:
        """The name in a scrape.

        >>> Metric("retries", "counter", "").full_name
        'faultline_retries_total'
        """
        return f"faultline_{self.name}{'_total' if self.kind == 'counter' else ''}"


_JOB: Final = ("queue", "task")

_ALL: Final = (
    Metric("jobs_enqueued", "counter", "Jobs this process put in their queues, except in a caller's own transaction.", _JOB),
    Metric("jobs_settled", "counter", "Leases that ended here, by outcome: succeeded, failed (to be retried), crashed (the same), "
           "dead, snoozed, released, cancelled, refused, lost, unknown, unsettled.", (*_JOB, "outcome")),
    Metric("job_duration_seconds", "histogram", "Time a handler took.", _JOB, SECONDS),
    Metric("job_pickup_seconds", "histogram", "Time from when a job was due to its claim, by the database's clock.", ("queue",), WAITS),
    Metric("retries", "counter", "Attempts begun that were not a job's first.", _JOB),
    Metric("crashes", "counter", "Handlers whose process died under them, by what it died of.", ("task", "signature")),
    Metric("leases_acquired", "counter", "Leases granted by claims.", ("queue",)),
    Metric("leases_renewed", "counter", "Leases renewed by heartbeats."),
    Metric("leases_expired", "counter", "Leases not renewed, as this process's watchdog took them back.", ("queue",)),
    Metric("jobs_expired", "counter", "Jobs that no worker claimed before they expired, as this process's watchdog ended them.", _JOB),
    Metric("leases_taken_over", "counter", "Claims of jobs whose last lease had expired."),
    Metric("recovery_seconds", "histogram", "Time from when a lease was found expired to the next claim of its job.", (), SECONDS),
    Metric("stale_writes_refused", "counter", "Writes the fence refused because their lease was lost, by reason.", ("queue", "reason")),
    Metric("zombie_seconds", "histogram", "Time a refused worker had lived on after another had taken its job.", (), SECONDS),
    Metric("commits_resolved", "counter", "Commits whose reply was lost and of which the rows told the outcome.", ("answer",)),
    Metric("claim_duration_seconds", "histogram", "Time a claim that found work took.", (), SECONDS),
    Metric("worker_slots", "gauge", "Executor slots of this worker, by state: busy, idle, stuck (its thread would not stop).", ("state",)),
    Metric("worker_jobs_in_hand", "gauge", "Leases held: running, waiting for a slot, being recorded."),
    Metric("worker_jobs_buffered", "gauge", "Jobs claimed and not begun."),
    Metric("worker_listening", "gauge", "1 while wake-ups can be heard, 0 while the worker only polls.", together="max"),
    Metric("worker_outage_seconds", "gauge", "How long the database has been away from this worker; 0 while it is there.", together="max"),
    Metric("loop_blocked_seconds", "counter", "Time for which a handler kept the event loop from turning, where that was over a second.",
           ("task",)),
    Metric("pool_connections", "gauge", "Connections for job.complete, by pool (threads, loop) and state (lent, idle).", ("pool", "state")),
    Metric("pacemaker_beats", "counter", "Calls the pacemaker made, by answer: ok, failed.", ("answer",)),
    Metric("pacemaker_beat_age_seconds", "gauge", "Time since a pacemaker's call last went well.", together="max"),
    Metric("pacemaker_restarts", "counter", "Pacemakers that ended and were replaced."),
    Metric("processes", "gauge", "Worker processes that are there."),
    Metric("process_restarts", "counter", "Worker processes that ended and were started again by their supervisor."),
    Metric("watchdog_rounds", "counter", "Rounds this process's watchdog made: leases taken back, due jobs lined up."),
    Metric("watchdog_round_seconds", "histogram", "Time the walk of a round took.", (), SECONDS),
    Metric("watchdog_leads", "gauge", "1 where this process's watchdog leads the slow chores."),
    Metric("watchdog_chores_failed", "counter", "Chores that failed; each gets its next turn as usual.", ("chore",)),
    Metric("schedule_occurrences", "counter", "Times at which schedules were due, as this process's watchdog decided them, by decision: enqueued, "
           "made_up (missed, and enqueued afterwards), skipped (for the job before).", ("decision",)),
    Metric("schedule_lag_seconds", "histogram", "Time from when a schedule was due to when this process's watchdog fired it.", (), WAITS),
    Metric("schedule_failures", "counter", "Times a schedule could not be fired, or its next time not computed, by this process's watchdog."),
    Metric("clock_steps", "counter", "Times the database's clock was set, as this process's watchdog noticed, by direction: forward, back.",
           ("direction",)),
    Metric("timeline_changes", "counter", "Promotions, restores and upgrades of the database's server that this process's watchdog noticed."),
    Metric("server_requests", "counter", "Requests and calls that a server answered, by protocol (http, grpc), route and answer: ok, refused (the client's "
           "fault), failed (ours).", ("protocol", "route", "answer")),
    Metric("server_refusals", "counter", "Refused requests and calls, by the code of the refusal; connections that were turned away too.", ("protocol", "reason")),
    Metric("server_request_seconds", "histogram", "Time from a request's head, or a message, to its answer; long polls wait on purpose.",
           ("protocol", "route"), WAITS),
    Metric("server_bytes", "counter", "Bytes of bodies and messages, by direction: received, sent.", ("protocol", "direction")),
    Metric("server_connections", "gauge", "Open connections.", ("protocol",)),
    Metric("server_in_hand", "gauge", "Requests and calls being served, by the budget they are counted in.", ("protocol", "kind")),
    Metric("build_info", "gauge", "Always 1; the labels say what runs.", ("version", "python"), together="max"),
    Metric("queue_jobs", "gauge", "Jobs by queue and state: due, running, scheduled, dead. A lower bound past "
           "faultline_queue_jobs_counted_max.", ("queue", "state"), by="database"),
    Metric("queue_lag_seconds", "gauge", "How long the first due job of a queue has been due; 0 for a paused queue.", ("queue",), by="database"),
    Metric("queue_paused", "gauge", "1 while a queue is paused.", ("queue",), by="database"),
    Metric("queue_jobs_counted_max", "gauge", "At how many jobs of one queue and priority counting stops.", by="database"),
    Metric("limit_jobs", "gauge", "Jobs by limit and state: held (a slot, claimed or not), waiting. Counted to 10,000.", ("limit", "state"), by="database"),
    Metric("refusals", "gauge", "Refused writes that are on record, by reason; pruned with the ledger.", ("reason",), by="database"),
    Metric("workers", "gauge", "Workers that said they were there, by state: alive, silent.", ("state",), by="database"),
    Metric("schedules", "gauge", "Schedules by state: active, paused, failing, ended.", ("state",), by="database"),
    Metric("schedule_late_seconds", "gauge", "How long the first due schedule has been due; 0 when none is.", by="database"),
    Metric("claims", "counter", "Claims that found work, since the schema was made: tokens issued.", by="database"),
    Metric("round_age_seconds", "gauge", "Time since any watchdog made a round; without rounds no lost lease comes back.", by="database"),
    Metric("oldest_transaction_seconds", "gauge", "Age of the oldest open transaction: it keeps dead rows from being removed. Absent where the schema's owner may not see those of other roles.", by="database"),
    Metric("table_rows", "gauge", "Live rows of a table, as the server estimates them.", ("table",), by="database"),
    Metric("table_dead_rows", "gauge", "Dead rows of a table, as the server estimates them.", ("table",), by="database"),
    Metric("table_bytes", "gauge", "Size of a table with its indexes.", ("table",), by="database"),
    Metric("database_up", "gauge", "1 when the database answered the last question in time.", by="database"),
    Metric("database_scrape_seconds", "gauge", "Time the last answer took.", by="database"),
)  # fmt: skip

METRICS: Final = {metric.name: metric for metric in _ALL}
