"""A server process for a drill; its order comes as JSON on stdin.

The gRPC server that `faultline server` runs, with a watchdog beside it: workers that know no database have
none of their own.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from datetime import timedelta
from typing import Any

import faultline
from faultline.lab.drills.processes.worker_main import begin
from faultline.runtime import event_loop
from faultline.server.auth import Authenticator
from faultline.server.grpc import GrpcConfig, GrpcServer
from faultline.store import calls
from faultline.store.pool import AsyncStore
from faultline.telemetry import emit
from faultline.watchdog.watchdog import Watchdog

GRACE_SECONDS = 1.0
TICK_SECONDS = 1.0


def main() -> int:
    """Take the order, serve on a free port of this machine, and say where that is."""
    order = begin()
    logging.getLogger("faultline.events").setLevel(logging.INFO)
    return event_loop.run(_serve(order))


async def _serve(order: dict[str, Any]) -> int:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    store = AsyncStore(order["dsn"])
    server = GrpcServer(store, Authenticator(store), GrpcConfig(address=f"127.0.0.1:{order.get('port', 0)}"))
    await server.start()
    me = await store.run(
        calls.worker_started(order["name"], socket.gethostname(), os.getpid(), [], 1, faultline.__version__)
    )
    tick = timedelta(seconds=order.get("tick_seconds", TICK_SECONDS))
    watching = asyncio.create_task(Watchdog(order["dsn"], me, tick).run())
    emit("serving", url=f"grpc://127.0.0.1:{server.port}")
    await stopping.wait()
    watching.cancel()
    await asyncio.wait([watching])
    await server.stop(GRACE_SECONDS)
    await store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
