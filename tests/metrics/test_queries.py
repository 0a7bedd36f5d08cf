"""Every query of the dashboard and the alert rules is asked of a worker and a server that had a bad day."""

import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from faultline.metrics.names import METRICS
from scripts import dashboard, tools
from tests.metrics.conftest import Samples, Scrapes
from tests.worker.harness import eventually

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
OPERATE = ROOT / "docs/guides/observe.md"

SELECTOR = re.compile(r"(?<![\w.])(faultline_[a-z_]+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
GROUPED = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")
FROM_PROMETHEUS = {"instance", "job", "le"}


def rules() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    return found


def queries() -> list[str]:
    """All of them, with Grafana's variables filled in."""
    found = [
        target["expr"] for panel in dashboard.dashboard()["panels"] for target in panel.get("targets", [])
    ]
    found += [rule["expr"] for rule in rules()]
    return [
        query.replace("$__rate_interval", "1m").replace("$__range", "1h").replace("$queue", ".*")
        for query in found
    ]


def selected(samples: Samples, name: str, matchers: str | None) -> list[frozenset[tuple[str, str]]]:
    """The series a selector of PromQL finds in a scrape."""
    wanted = MATCHER.findall(matchers or "")
    return [labels for known, labels in samples if known == name and _all_fit(dict(labels), wanted)]


def _all_fit(labels: dict[str, str], wanted: list[tuple[str, str, str]]) -> bool:
    def fits(label: str, how: str, pattern: str) -> bool:
        has = labels.get(label, "")
        found = re.fullmatch(pattern, has) is not None if "~" in how else has == pattern
        return found is not how.startswith("!")

    return all(fits(*each) for each in wanted)


def test_every_query_finds_a_series_in_a_live_scrape(bad_day: Scrapes):
    samples = bad_day.samples()

    assert len(queries()) > 50
    assert [said for query in queries() for said in _amiss(samples, query)] == []


def _amiss(samples: Samples, query: str) -> Iterator[str]:
    grouped = {word.strip() for words in GROUPED.findall(query) for word in words.split(",")}
    for name, matchers in SELECTOR.findall(query):
        series = selected(samples, name, matchers)
        known = {label for labels in series for label, _ in labels} | FROM_PROMETHEUS
        if not series or not grouped <= known:
            yield f"{query}: {len(series)} series of {name}{{{matchers}}}, with {sorted(known)}"


def test_every_metric_is_used_by_a_panel_or_an_alert():
    """A metric that is in no panel and in no rule is not found when it matters."""
    asked = {name for query in queries() for name, _ in SELECTOR.findall(query)}

    unseen = {
        metric.full_name
        for metric in METRICS.values()
        if not {metric.full_name, f"{metric.full_name}_bucket"} & asked
    }

    assert unseen <= {
        "faultline_queue_paused", "faultline_queue_jobs_counted_max", "faultline_claims_total",
        "faultline_worker_listening", "faultline_watchdog_round_seconds",
    }  # fmt: skip


def test_the_committed_dashboard_is_what_the_script_makes():
    assert json.loads(dashboard.DASHBOARD.read_text()) == dashboard.dashboard()
    assert dashboard.dashboard()["uid"] == "faultline"


def test_the_guides_table_of_metrics_is_what_the_script_makes():
    text = dashboard.GUIDE.read_text()
    assert dashboard.guide(text) == text


def test_every_alert_is_in_the_guide_with_what_to_do():
    text = OPERATE.read_text()
    assert [rule["alert"] for rule in rules() if rule["alert"] not in text] == []


@pytest.mark.skipif(shutil.which("promtool") is None, reason=tools.why_not("promtool"))
def test_promtool_accepts_the_rules():
    told = subprocess.run(["promtool", "check", "rules", str(ALERTS)], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr


@pytest.fixture
def pages(bad_day: Scrapes) -> Iterator[dict[str, int]]:
    """The two scrapes, served for a Prometheus to read."""
    servers = {}
    for name, body in (("worker", bad_day.worker), ("server", bad_day.server)):
        server = ThreadingHTTPServer(("127.0.0.1", 0), _page(body))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers[name] = server
    yield {name: server.server_address[1] for name, server in servers.items()}
    for server in servers.values():
        server.shutdown()
        server.server_close()


def _page(body: str) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            """Not into the test's output."""

    return Page


@pytest.mark.skipif(shutil.which("prometheus") is None, reason=tools.why_not("prometheus"))
@pytest.mark.long
def test_a_real_prometheus_answers_every_query_with_a_series(pages, tmp_path):
    """Alerts without their comparison: not that it holds is asked, but that there is something to compare."""
    jobs = [
        {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        for name, port in pages.items()
    ]
    config = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs, "rule_files": [str(ALERTS)]}
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    prometheus = subprocess.Popen(
        ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
         f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"],
    )  # fmt: skip
    try:
        eventually(lambda: _asked(port, "count_over_time(faultline_processes[1m]) > 4"), 60)
        empty = [query for query in queries() if not _asked(port, _without_comparison(query))]
    finally:
        prometheus.terminate()
        prometheus.wait(30)

    assert empty == []


def _without_comparison(query: str) -> str:
    return re.sub(r"\s[<>]=?\s[\d.e]+$", "", query.strip())


def _asked(port: int, query: str) -> list[Any]:
    try:
        words = urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{words}", timeout=60) as reply:
            found: list[Any] = json.load(reply)["data"]["result"]
            return found
    except OSError:
        time.sleep(0.2)
        return []
