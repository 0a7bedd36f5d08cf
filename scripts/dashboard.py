"""Generate `deploy/grafana/faultline.json` and the table of metrics in `docs/guides/observe.md`.

Usage: python scripts/dashboard.py. A test compares what it would write with what is there, and asks every query
of a worker and a server that have just had a bad day.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faultline.metrics.names import METRICS, SERIES_MAX, VALUES_MAX

ROOT = Path(__file__).resolve().parent.parent
DASHBOARD = ROOT / "deploy/grafana/faultline.json"
GUIDE = ROOT / "docs/guides/observe.md"
BEGIN, END = "<!-- metrics: made by scripts/dashboard.py -->", "<!-- end of metrics -->"

UID = "faultline"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
QUEUE = 'queue=~"$queue"'
RATE = "$__rate_interval"

Panel = tuple[str, str, dict[str, str], str]
"""Title, unit, legend and query of each line, and what to read in it."""


def rate(metric: str, by: str = "", where: str = "") -> str:
    """How often a second, by some label."""
    grouped = f"sum by ({by}) " if by else "sum "
    return f"{grouped}(rate({metric}{{{where}}}[{RATE}]))" if where else f"{grouped}(rate({metric}[{RATE}]))"


def quantile(share: float, metric: str, where: str = "") -> str:
    """The value that this share of all stays under."""
    chosen = f"{{{where}}}" if where else ""
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{chosen}[{RATE}])))"


def quantiles(metric: str, where: str = "") -> dict[str, str]:
    return {f"p{share * 100:g}": quantile(share, metric, where) for share in (0.5, 0.95, 0.99)}


ROWS: dict[str, list[Panel]] = {
    "Work": [
        ("Jobs that succeeded", "ops", {"{{queue}}": rate("faultline_jobs_settled_total", "queue", f'outcome="succeeded",{QUEUE}')},
         "A second, by queue."),
        ("Other ends", "ops", {"{{outcome}}": rate("faultline_jobs_settled_total", "outcome", f'outcome!="succeeded",{QUEUE}')},
         "failed and crashed are retried, dead are not; refused and lost are late workers."),
        ("Jobs by state", "short", {"{{queue}} {{state}}": f"max by (queue, state) (faultline_queue_jobs{{{QUEUE}}})"},
         "A lower bound past faultline_queue_jobs_counted_max."),
        ("Lag", "s", {"{{queue}}": f"max by (queue) (faultline_queue_lag_seconds{{{QUEUE}}})"},
         "How long the first due job has been due."),
        ("Jobs of limits", "short", {"{{limit}} {{state}}": "max by (limit, state) (faultline_limit_jobs)"},
         "held: with a slot, claimed or not; waiting: for one."),
        ("Time in handlers", "s", quantiles("faultline_job_duration_seconds", QUEUE), ""),
        ("Time to pickup", "s", quantiles("faultline_job_pickup_seconds", QUEUE), "From due to claimed."),
        ("Enqueued", "ops", {"{{queue}}": rate("faultline_jobs_enqueued_total", "queue", QUEUE)}, "By processes that export metrics."),
        ("Retries", "ops", {"{{task}}": rate("faultline_retries_total", "task", QUEUE)}, "Attempts that were not the first."),
    ],
    "Crashes and late workers": [
        ("Stale writes refused", "ops", {"{{reason}}": rate("faultline_stale_writes_refused_total", "reason", QUEUE)},
         "The fence at work. token_mismatch: a newer attempt exists."),
        ("Leases", "ops", {
            "acquired": rate("faultline_leases_acquired_total"), "renewed": rate("faultline_leases_renewed_total"),
            "jobs expired": rate("faultline_jobs_expired_total"),
            "expired": rate("faultline_leases_expired_total"), "taken over": rate("faultline_leases_taken_over_total"),
        }, ""),
        ("Recovery", "s", quantiles("faultline_recovery_seconds"), "From a lease found expired to the next claim."),
        ("Zombies", "s", quantiles("faultline_zombie_seconds"), "How long a refused worker had lived on after a takeover."),
        ("Crashes", "ops", {"{{task}} {{signature}}": rate("faultline_crashes_total", "task, signature")}, "Handlers whose process died."),
        ("Unknown commits resolved", "ops", {"{{answer}}": rate("faultline_commits_resolved_total", "answer")},
         "The reply was lost, and the rows told."),
    ],
    "Workers": [
        ("Runners", "short", {"{{state}}": "sum by (state) (faultline_worker_slots)"}, "stuck: a thread that would not stop."),
        ("Jobs in hand", "short", {"in hand": "sum (faultline_worker_jobs_in_hand)", "not begun": "sum (faultline_worker_jobs_buffered)"}, ""),
        ("Pacemakers", "ops", {"{{answer}}": rate("faultline_pacemaker_beats_total", "answer"), "restarts": rate("faultline_pacemaker_restarts_total")}, ""),
        ("Oldest good beat", "s", {"{{instance}}": "max by (instance) (faultline_pacemaker_beat_age_seconds)"}, "Longer than a lease: its jobs are being lost."),
        ("Processes", "short", {"there": "sum (faultline_processes)", "restarts": "sum (increase(faultline_process_restarts_total[$__range]))"}, ""),
        ("Connections for job.complete", "short", {"{{pool}} {{state}}": "sum by (pool, state) (faultline_pool_connections)"}, ""),
        ("Database away", "s", {"{{instance}}": "max by (instance) (faultline_worker_outage_seconds)"}, "As each worker sees it."),
        ("Loop blocked", "s", {"{{task}}": rate("faultline_loop_blocked_seconds_total", "task")}, "Seconds a second in which an async handler let nothing else of its worker turn."),
        ("Claims", "s", quantiles("faultline_claim_duration_seconds"), "Time a claim took."),
        ("Versions", "short", {"{{version}} on Python {{python}}": "count by (version, python) (faultline_build_info)"}, ""),
    ],
    "Server": [
        ("Requests", "ops", {"{{protocol}} {{answer}}": rate("faultline_server_requests_total", "protocol, answer")}, "refused: the client's fault; failed: the server's."),
        ("Refusals", "ops", {"{{protocol}} {{reason}}": rate("faultline_server_refusals_total", "protocol, reason")}, "By the code that the client was told."),
        ("Time of a request", "s", quantiles("faultline_server_request_seconds", 'route!~".*(wait|Wait|Lease|events|ask)"'), "Without those that wait on purpose."),
        ("Connections", "short", {"{{protocol}}": "sum by (protocol) (faultline_server_connections)"}, ""),
        ("In hand", "short", {"{{protocol}} {{kind}}": "sum by (protocol, kind) (faultline_server_in_hand)"}, "Each kind has a budget of its own, in all and for each key."),
        ("Bytes", "Bps", {"{{protocol}} {{direction}}": rate("faultline_server_bytes_total", "protocol, direction")}, "Of bodies and messages."),
    ],
    "Schedules": [
        ("Occurrences", "ops", {"{{decision}}": rate("faultline_schedule_occurrences_total", "decision")}, "made_up: missed, and enqueued afterwards. skipped: the job before had not ended."),
        ("Lag", "s", quantiles("faultline_schedule_lag_seconds"), "From when a schedule was due to when it was fired."),
        ("Schedules", "short", {"{{state}}": "max by (state) (faultline_schedules)"}, "failing: `faultline schedules show` says why."),
        ("Late", "s", {"late": "max (faultline_schedule_late_seconds)", "failures": rate("faultline_schedule_failures_total")}, "Without a watchdog nothing is fired."),
    ],
    "Database": [
        ("Last round", "s", {"age": "max (faultline_round_age_seconds)"}, "Without rounds no lost lease comes back."),
        ("Rounds", "ops", {"rounds": rate("faultline_watchdog_rounds_total"), "leaders": "sum (faultline_watchdog_leads)"}, ""),
        ("Clock and timeline", "short", {"set {{direction}}": "sum by (direction) (increase(faultline_clock_steps_total[$__range]))", "timelines": "sum (increase(faultline_timeline_changes_total[$__range]))"}, "Times the clock was set, and promotions."),
        ("Oldest transaction", "s", {"age": "max (faultline_oldest_transaction_seconds)"}, "It keeps dead rows from being removed."),
        ("Dead rows", "short", {"{{table}}": "max by (table) (faultline_table_dead_rows)"}, ""),
        ("Rows", "short", {"{{table}}": "max by (table) (faultline_table_rows)"}, ""),
        ("Size", "bytes", {"{{table}}": "max by (table) (faultline_table_bytes)"}, ""),
        ("Workers", "short", {"{{state}}": "max by (state) (faultline_workers)"}, ""),
        ("Refusals on record", "short", {"{{reason}}": "max by (reason) (faultline_refusals)"}, ""),
        ("Time of a scrape", "s", {"seconds": "max (faultline_database_scrape_seconds)", "up": "min (faultline_database_up)"}, ""),
    ],
}  # fmt: skip


def panels() -> Iterator[dict[str, Any]]:
    """Three to a row of the screen, under a heading each."""
    number, y = 1, 0
    for heading, row in ROWS.items():
        yield {"id": number, "type": "row", "title": heading, "collapsed": False, "panels": [],
               "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}}  # fmt: skip
        number, y = number + 1, y + 1
        for place, (title, unit, lines, about) in enumerate(row):
            at = {"x": place % 3 * 8, "y": y + place // 3 * 7, "w": 8, "h": 7}
            yield panel(number, title, unit, lines, about) | {"gridPos": at}
            number += 1
        y += (len(row) + 2) // 3 * 7


def panel(number: int, title: str, unit: str, lines: dict[str, str], about: str) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + place), "datasource": SOURCE, "expr": query, "legendFormat": legend}
        for place, (legend, query) in enumerate(lines.items())
    ]
    return {
        "id": number, "type": "timeseries", "title": title, "description": about, "datasource": SOURCE,
        "targets": targets, "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}},
    }  # fmt: skip


def dashboard() -> dict[str, Any]:
    variables = [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}, "hide": 0},
        {"name": "queue", "label": "Queue", "type": "query", "datasource": SOURCE, "includeAll": True, "multi": True,
         "allValue": ".*", "current": {"text": "All", "value": "$__all"}, "refresh": 2, "sort": 1,
         "query": {"query": "label_values(faultline_queue_lag_seconds, queue)", "refId": "queues"},
         "definition": "label_values(faultline_queue_lag_seconds, queue)"},
    ]  # fmt: skip
    return {
        "uid": UID, "title": "Faultline", "tags": ["faultline", "jobs"], "schemaVersion": 39, "version": 1,
        "editable": True, "refresh": "10s", "time": {"from": "now-1h", "to": "now"}, "timezone": "browser",
        "graphTooltip": 1, "templating": {"list": variables}, "annotations": {"list": []}, "links": [],
        "panels": list(panels()),
    }  # fmt: skip


def table() -> str:
    """Every metric as a line of Markdown: those of a process, then those of the database."""
    lines = []
    for by, heading in (("process", "Of each process"), ("database", "Of the database")):
        lines += [
            f"**{heading}**",
            "",
            "| metric | kind | labels | what it says |",
            "| --- | --- | --- | --- |",
        ]
        lines += [
            f"| `{metric.full_name}` | {metric.kind} | {' '.join(f'`{label}`' for label in metric.labels)} | {metric.help} |"
            for metric in METRICS.values()
            if metric.by == by
        ]
        lines.append("")
    bounds = ", ".join(f"{most} of `{label}`" for label, most in VALUES_MAX.items())
    lines.append(
        f"Of names there are at most so many, the rest are `other`: {bounds}; {SERIES_MAX} series of one metric."
    )
    return "\n".join(lines)


def guide(text: str) -> str:
    """The guide with its table generated again."""
    return re.sub(
        f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}\n{table()}\n{END}", text, flags=re.DOTALL
    )


def main() -> None:
    DASHBOARD.write_text(json.dumps(dashboard(), indent=2) + "\n")
    GUIDE.write_text(guide(GUIDE.read_text()))


if __name__ == "__main__":
    main()
