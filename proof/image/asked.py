"""What is asked of the installation once it runs: each function gives a line of the report, or raises."""

import json
import subprocess
import urllib.request
from collections.abc import Callable
from typing import Any

from proof.image.composed import COMPOSE, Composed
from proof.image.engine import EngineFailed
from proof.image.images import OURS, ROOT

SERVER = "http://localhost:8000"
PROMETHEUS = "http://localhost:9090"


def the_image_runs_as_a_number_on_a_read_only_file_system(here: Composed) -> str:
    bare = ["--rm", "--network=none", "--read-only", "--cap-drop=ALL"]
    told = here.engine.run(
        "podman", "run", *bare, OURS, "sh", "-c", "id -u; faultline --version; touch /x || true"
    )
    user, version = told.split("\n")[:2]
    _expect(user == "10001" and version.startswith("faultline "), told)
    return version


def the_migration_can_be_run_again_with_make(here: Composed) -> str:
    ours = {**here.engine.environment, "COMPOSE": str(COMPOSE)}
    for name in ("FAULTLINE_DSN", "MAKEFLAGS", "MAKELEVEL"):
        ours.pop(name, None)
    done = subprocess.run(
        ["make", "-s", "migrate"],
        cwd=ROOT,
        env=ours,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told = done.stdout + done.stderr
    _expect(done.returncode == 0 and "the schema is current" in told, told)
    return "make migrate: the schema is current"


def health_answers(here: Composed) -> str:
    return f"GET {SERVER}/health: {_get(f'{SERVER}/health')}"


def a_job_submitted_over_http_is_done_by_the_worker(here: Composed) -> str:
    key = here.compose("run", "--rm", "--no-deps", "keys", "cat", "/secrets/keys/admin").split()[-1]
    body = json.dumps({"task": "fetch", "args": {"url": "flaky"}}).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    job = _get(urllib.request.Request(f"{SERVER}/api/v1/jobs", body, headers))

    def done() -> Any:
        found = _get(urllib.request.Request(f"{SERVER}/api/v1/jobs/{job['id']}", headers=headers))
        return found if found["state"] == "succeeded" else None

    here.wait_for(lambda: bool(done()), "the job is not done", "worker")
    return str(done()["result"])


def a_worker_reads_no_secret_but_its_own(here: Composed) -> str:
    found = here.inside("worker", "find", "/secrets", "-type", "f").split()
    _expect(found == ["/secrets/worker/pgpass"], f"a worker reads {found}")
    mounted = here.inside("worker", "grep", "-c", " /secrets", "/proc/mounts").strip()
    _expect(mounted == "1", f"{mounted} volumes of secrets")
    return found[0]


def a_workers_login_may_work_and_nothing_else(here: Composed) -> str:
    for words in (("keys", "list"), ("jobs", "list"), ("queues", "pause", "default"), ("roles", "create")):
        told = here.engine.run(
            "podman",
            "exec",
            here.container("worker"),
            "sh",
            "-c",
            f"faultline {' '.join(words)} 2>&1 || true",
        )
        _expect(
            "permission denied" in told or "may not" in told or "must be owner" in told, f"{words}: {told}"
        )
    return "keys list, jobs list, queues pause and roles create are refused"


def prometheus_scrapes_server_and_worker(here: Composed) -> str:
    def up() -> list[str]:
        targets = _get(f"{PROMETHEUS}/api/v1/targets")["data"]["activeTargets"]
        return sorted(one["labels"]["job"] for one in targets if one["health"] == "up")

    here.wait_for(lambda: len(up()) == 2, "not both are scraped", "prometheus")
    return f"up: {', '.join(up())}"


def a_worker_that_is_stopped_leaves_in_time(here: Composed) -> str:
    here.compose("stop", "--timeout", "45", "worker")
    code = here.engine.run(
        "podman", "inspect", "--format", "{{.State.ExitCode}}", here.container("worker")
    ).strip()
    _expect(code == "0", f"exit code {code}: {here.said('worker')}")
    return "exit code 0"


def _get(asked: str | urllib.request.Request) -> Any:
    with urllib.request.urlopen(asked, timeout=20) as reply:
        return json.load(reply)


def _expect(kept: bool, otherwise: str) -> None:
    if not kept:
        raise EngineFailed(otherwise.strip())


OF_ALL: tuple[Callable[[Composed], str], ...] = (
    the_image_runs_as_a_number_on_a_read_only_file_system,
    the_migration_can_be_run_again_with_make,
    health_answers,
    a_job_submitted_over_http_is_done_by_the_worker,
    a_worker_reads_no_secret_but_its_own,
    a_workers_login_may_work_and_nothing_else,
    prometheus_scrapes_server_and_worker,
    a_worker_that_is_stopped_leaves_in_time,
)
