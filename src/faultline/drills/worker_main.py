"""A worker process for a drill: `python -m faultline.drills.worker_main`, its order as JSON on stdin.

It is the ordinary worker with its ordinary pacemaker and watchdog. Only three things are a drill's: it may
wait at a barrier before it starts, it pauses where it was told to, and it ends when its standard input does,
because then its drill is gone.
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
from faultline.drills import pauses, workloads
from faultline.drills.barriers import pass_through
from faultline.drills.gates import Gates, heard
from faultline.running import work
from faultline.store.connect import connect
from faultline.telemetry import configure_logging
from faultline.worker.doors import Doors


def main() -> int:
    """Take the order, wait at the gate, work until told to stop."""
    order = begin()
    workloads.me = os.environ["FAULTLINE_DRILL_WORKER"] = order["name"]  # children inherit it
    if "server" in order:
        return _work_for_server(order)
    pauses.arm(order["dsn"], order["name"], [pauses.Pause(*pause) for pause in order.get("pauses", ())])
    if order.get("gate"):
        with connect(order["dsn"]) as conn, conn.transaction():
            pass_through(conn, order["gate"])
    return asyncio.run(_work(order, Settings(dsn=order["dsn"])))


def _work_for_server(order: dict[str, Any]) -> int:
    """Work for a server; nothing in this process knows where the database is."""
    # Late, because gRPC is an extra.
    from faultline.drills.late import LateDoors
    from faultline.remote.address import Address

    workloads.gates.pass_through(order["gate"] or "")
    doors = LateDoors(Address.read(order["server"], order["key"]), workloads.gates, order["late"])
    return asyncio.run(_work(order, Settings(), doors))


def begin() -> dict[str, Any]:
    """What every process of a drill does first: read its order, leave with its drill, speak in JSON."""
    # Unbuffered: a thread that waits inside a buffered reader would hold its lock as the interpreter ends.
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        order: dict[str, Any] = json.loads(stdin.readline())
    workloads.gates = Gates(order.get("closed", ()))
    threading.Thread(target=_leave_with_the_drill, daemon=True).start()
    configure_logging(sys.stderr, json=True, level="debug")
    logging.getLogger().setLevel(logging.INFO)
    logging.getLogger("faultline.events").setLevel(logging.DEBUG)
    return order


async def _work(order: dict[str, Any], settings: Settings, doors: Doors | None = None) -> int:
    config = WorkerConfig(
        queues={order["queue"]: None},
        jobs_max=order.get("jobs_max", 2),
        lease_for=timedelta(seconds=order["lease_seconds"]),
        grace=timedelta(seconds=2),
    )
    return await work(workloads.app.registry, settings, config, name=order["name"], signals=True, doors=doors)


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
