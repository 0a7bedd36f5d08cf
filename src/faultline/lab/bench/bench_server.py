"""A server before the database of a bench: its process, and what a worker has to know of it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from faultline.lab.drills.processes.server_process import SERVER, make_key
from faultline.lab.drills.processes.worker_processes import DrillProcess, ProcessKeeper
from faultline.lab.drills.view.trace import Trace
from faultline.store.driver.connect import connect


@contextmanager
def served(dsn: str) -> Iterator[Mapping[str, str]]:
    """Serve a database while the block runs; gives the environment of a worker that knows only the server."""
    trace, keeper = Trace(), ProcessKeeper()
    with connect(dsn) as conn:
        key = make_key(conn)
    server = DrillProcess(SERVER, {"dsn": dsn}, trace, keeper, program="server_main")
    try:
        url = trace.wait_for_event(SERVER, "serving").facts["url"]
        yield {"FAULTLINE_SERVER": url, "FAULTLINE_API_KEY": key}
    finally:
        server.end()
        keeper.close()
