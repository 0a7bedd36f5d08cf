"""Signs of life for `faultline health`: a worker's row, a server's answer, a file's age."""

import contextlib
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from faultline.cli.format import safe, span
from faultline.cli.terminal import CommandSession

if TYPE_CHECKING:
    from faultline.store.rows import WorkerInfo

ANSWER_SECONDS_MAX: Final = 5.0
ANSWER_BYTES_MAX: Final = 1_000
WORKERS_MAX: Final = 1_000
"""The number of newest workers in which the name is searched."""

Signs = tuple[dict[str, Any], str]


def of_a_worker(session: CommandSession, name: str) -> str:
    """`working`, `silent` or `gone`: the worker of this name, or the best of the group NAME/1, NAME/2 ..."""
    from faultline.store import calls

    found = [worker for worker in session.run(calls.list_workers(most=WORKERS_MAX)) if _is(worker, name)]
    if not found:
        return "gone"
    return "silent" if all(worker.silent for worker in found) else "working"


def _is(worker: "WorkerInfo", name: str) -> bool:
    return worker.name == name or worker.name.startswith(f"{name}/")


def of_a_server(url: str) -> Signs:
    """Whether a server is ready."""
    if not url.startswith(("http://", "https://")):
        raise click.UsageError(f"{url[:100]!a} is no address of a server; write http://localhost:8000")
    facts: dict[str, Any] = {"server": safe(url), "problems": []}
    # Never through a proxy: the probe runs beside the server, and does not test the proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url.rstrip('/')}/readyz", timeout=ANSWER_SECONDS_MAX) as answer:
            answer.read(ANSWER_BYTES_MAX)
    except urllib.error.HTTPError as error:
        said = error.read(ANSWER_BYTES_MAX).decode(errors="replace")
        facts["problems"] = [f"the server answers {error.code}: {_reason(said)}"]
    except http.client.HTTPException:
        facts["problems"] = [
            "what answers there does not speak HTTP; give the address of the server's --http, not of its "
            "--grpc"
        ]
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        facts["problems"] = [f"the server does not answer: {safe(reason)}"]
    return facts, "the server is ready"


def _reason(said: str) -> str:
    """The text of a problem document, or of any other answer, on one line."""
    with contextlib.suppress(ValueError):
        document = json.loads(said)
        if isinstance(document, dict):
            said = str(document.get("detail") or document.get("title") or said)
    return safe(" ".join(said.split()))


def of_a_file(within: timedelta) -> Signs:
    """Whether the worker or server beside this process has touched its file lately."""
    named = os.environ.get("FAULTLINE_ALIVE_FILE")
    if not named:
        raise click.UsageError(
            "--alive looks at the file that FAULTLINE_ALIVE_FILE names; set it here as for the worker"
        )
    facts: dict[str, Any] = {"alive_age_seconds": None, "problems": []}
    try:
        age = time.time() - Path(named).stat().st_mtime
    except OSError:
        facts["problems"] = [f"there is no {safe(named)}: it has not begun, or has ended"]
        return facts, ""
    facts["alive_age_seconds"] = age
    if age > within.total_seconds():
        facts["problems"] = [f"its loop last turned {span(age)} ago"]
    return facts, f"its loop turned {span(max(age, 0.0))} ago"
