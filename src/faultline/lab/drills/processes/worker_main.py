"""A worker process for a drill; its order comes as JSON on stdin.

It is the ordinary worker with its ordinary pacemaker and watchdog. Three things are special: it may wait at
a barrier before it starts, it pauses at given places, and it ends with its standard input, because its drill
is gone then.
"""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from datetime import timedelta
from typing import Any

from faultline.config import Settings, WorkerConfig
from faultline.lab.drills import workloads
from faultline.lab.drills.stage import pauses
from faultline.lab.drills.stage.barriers import pass_through
from faultline.lab.drills.stage.stdin_barriers import StdinBarriers, heard
from faultline.runtime.run_worker import work
from faultline.store.driver.connect import connect
from faultline.telemetry import configure_logging
from faultline.worker.backend import Backend


def main() -> int:
    """Take the order, wait at the gate, work until told to stop."""
    order = begin()
    workloads.me = os.environ["FAULTLINE_DRILL_WORKER"] = order["name"]  # children inherit it
    if "server" in order:
        return _work_for_server(order)
    pauses.arm(order["dsn"], order["name"], [pauses.PausePoint(*pause) for pause in order.get("pauses", ())])
    if order.get("gate"):
        with connect(order["dsn"]) as conn, conn.transaction():
            pass_through(conn, order["gate"])
    return asyncio.run(_work(order, Settings(dsn=order["dsn"])))


def _work_for_server(order: dict[str, Any]) -> int:
    """Work for a server; nothing in this process knows where the database is."""
    # Late, because gRPC is an extra.
    from faultline.lab.drills.stage.late_results import LateBackend
    from faultline.remote.server_address import ServerAddress

    workloads.gates.pass_through(order["gate"] or "")
    backend = LateBackend(ServerAddress.read(order["server"], order["key"]), workloads.gates, order["late"])
    return asyncio.run(_work(order, Settings(), backend))


def begin() -> dict[str, Any]:
    """The first steps of every process of a drill: read its order, end with its drill, log in JSON."""
    # Unbuffered: a thread that waits inside a buffered reader would hold its lock as the interpreter ends.
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        order: dict[str, Any] = json.loads(stdin.readline())
    workloads.gates = StdinBarriers(order.get("closed", ()))
    threading.Thread(target=_leave_with_the_drill, daemon=True).start()
    configure_logging(sys.stderr, json=True, level="debug")
    logging.getLogger().setLevel(logging.INFO)
    logging.getLogger("faultline.events").setLevel(logging.DEBUG)
    return order


async def _work(order: dict[str, Any], settings: Settings, backend: Backend | None = None) -> int:
    config = WorkerConfig(
        queues={order["queue"]: None},
        jobs_max=order.get("jobs_max", 2),
        lease_for=timedelta(seconds=order["lease_seconds"]),
        grace=timedelta(seconds=2),
    )
    return await work(
        workloads.app.registry, settings, config, name=order["name"], signals=True, backend=backend
    )


def _leave_with_the_drill() -> None:
    unread = b""
    while came := os.read(0, 4096):
        *lines, unread = (unread + came).split(b"\n")
        for line in lines:
            heard(workloads.gates, line)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # the pacemaker, too, even if it is stopped
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
